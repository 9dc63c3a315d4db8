#!/usr/bin/python3
"""Changes what the elements do while they play, and prints what they report: controls.py [SOURCE]"""
import argparse
import signal
from collections.abc import Callable

import gi

gi.require_version("Gst", "1.0")
from gi.repository import GLib, Gst  # noqa: E402

CAMERA = "v4l2src ! videoconvert"
DISPLAY = "videoconvert ! autovideosink"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", nargs="?", default=CAMERA, help=f"as gst-launch-1.0 takes it ({CAMERA})")
    parser.add_argument("--sink", default=DISPLAY, help=f"where the pictures go ({DISPLAY})")
    parser.add_argument("--strength", type=float, nargs="*", default=[1, 2, 0], help="of nonlocaldenoise, in turn")
    parser.add_argument("--prompt", nargs="*", default=["", "much darker", "warmer"], help="of textcross, in turn")
    parser.add_argument("--seconds", type=float, default=3, help="how long each stays (3)")
    return parser.parse_args()


def change_in_turn(element: Gst.Element, name: str, values: list, seconds: float) -> None:
    """The first value now, and the next each time `seconds` have gone by."""
    remaining = iter(values)

    def change() -> bool:
        value = next(remaining, None)
        if value is None:
            return GLib.SOURCE_REMOVE
        print(f"set {element.get_name()} {name} = {value!r}", flush=True)
        element.set_property(name, value)
        return GLib.SOURCE_CONTINUE

    if change():
        GLib.timeout_add(int(1000 * seconds), change)


def report(message: Gst.Message) -> None:
    said = message.get_structure()
    at = said.get_value("stream-time") / Gst.SECOND
    if said.get_name() == "nonlocaldenoise":
        print(f"{at:7.2f} s  noise {said.get_value('noise-level'):.1f}, search {said.get_value('search-size')}",
              flush=True)
    elif said.get_name() == "textcross":
        print(f"{at:7.2f} s  prompt '{said.get_value('prompt')}' acts", flush=True)


def on_message(end: Callable[[int], None], message: Gst.Message) -> None:
    if message.type == Gst.MessageType.ELEMENT and message.get_structure():
        report(message)
    elif message.type == Gst.MessageType.ERROR:
        print(message.parse_error().gerror.message)
        end(1)
    elif message.type == Gst.MessageType.EOS:
        end(0)


def main() -> int:
    options = arguments()
    Gst.init(None)
    pipeline = Gst.parse_launch(f"{options.source} ! queue ! nonlocaldenoise name=denoise ! textcross name=grade"
                                f" ! {options.sink}")
    loop, status = GLib.MainLoop(), []

    def end(code: int) -> None:
        status.append(code)
        loop.quit()

    bus = pipeline.get_bus()
    bus.add_signal_watch()
    bus.connect("message", lambda _, message: on_message(end, message))
    # Ctrl-C: sinks get to end their files.
    GLib.unix_signal_add(GLib.PRIORITY_DEFAULT, signal.SIGINT, pipeline.send_event, Gst.Event.new_eos())
    change_in_turn(pipeline.get_by_name("denoise"), "strength", options.strength, options.seconds)
    change_in_turn(pipeline.get_by_name("grade"), "prompt", options.prompt, options.seconds)
    pipeline.set_state(Gst.State.PLAYING)
    loop.run()
    pipeline.set_state(Gst.State.NULL)
    return status[0]


if __name__ == "__main__":
    raise SystemExit(main())
