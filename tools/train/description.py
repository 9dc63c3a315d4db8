"""What a description may hold, by the rules of the library's reader (lib/network/layer_reader.cpp, network_model.cpp).

The reader meets a description once its weights are trained: check() refuses before. Only what a network may cost, in
operations and memory, is left to the reader.
"""
import json
import math
from collections.abc import Callable, Iterable
from typing import NamedTuple, NoReturn

import numpy as np

from blocks import MODES, REACHES

MOST_LAYERS, MOST_CHANNELS, MOST_KERNEL, MOST_FACTOR, MOST_WINDOW, MOST_FRAMES = 1000, 4096, 63, 16, 64, 64
MOST_MEAN_CHANNELS = 3
MOST_INPUTS, MOST_SCALE, MOST_MULTIPLE, MOST_PAIRS, MOST_BYTES = 64, 256, 1024, 2**24, 2**20
LETTERS = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")


class Plane(NamedTuple):
    """What a layer writes: its sides are the frame's times up / down."""
    channels: int
    up: int = 1
    down: int = 1
    multiple: int = 1  # the frame's sides are, for whole positions and windows

    def scaled(self, up: int, down: int) -> "Plane":
        common = math.gcd(self.up * up, self.down * down)
        return self._replace(up=self.up * up // common, down=self.down * down // common)

    def wants(self, window: int) -> int:
        samples = self.down * window
        return samples // math.gcd(self.up, samples)

    def __str__(self) -> str:
        return f"{self.channels} channels at {self.up}/{self.down} of the frame"


class Fields:
    """The fields of an object: each must be known, of its type and in its range."""

    def __init__(self, where: str, entry: object):
        self.where, self.entry, self.asked = where, entry, set()
        if not isinstance(entry, dict):
            self.fail(f"expected an object, found {entry!r}")

    def fail(self, problem: str) -> NoReturn:
        raise ValueError(f"{self.where}: {problem}")

    def take(self, key: str, standard: object, expected: str, fits: Callable[[object], bool]) -> object:
        """The field; without a `standard` it must be there."""
        self.asked.add(key)
        if key not in self.entry and standard is not None:
            return standard
        value = self.entry.get(key)
        if not fits(value):
            self.fail(f'expected "{key}" to be {expected}, found {json_text(value) if key in self.entry else "none"}')
        return value

    def integer(self, key: str, least: int, most: int, standard: int | None = None) -> int:
        return self.take(key, standard, f"a whole number from {least} to {most}",
                         lambda n: isinstance(n, int) and not isinstance(n, bool) and least <= n <= most)

    def number(self, key: str, least: float, most: float, standard: float | None = None) -> float:
        return self.take(key, standard, f"a number from {least:g} to {most:g}", lambda n: is_number(n) and least <= n <= most)

    def boolean(self, key: str, standard: bool) -> bool:
        return self.take(key, standard, "true or false", lambda value: isinstance(value, bool))

    def text(self, key: str, standard: str | None = None) -> str:
        return self.take(key, standard, "a string", lambda value: isinstance(value, str))

    def choice(self, key: str, known: Iterable[str]) -> str:
        """The first of them is the standard."""
        known = list(known)
        return self.take(key, known[0], " or ".join(f'"{name}"' for name in known), lambda value: value in known)

    def listed(self, key: str, least: int, most: int) -> list:
        return self.take(key, None, f"a list of {least} to {most} entries",
                         lambda value: isinstance(value, (list, tuple)) and least <= len(value) <= most)

    def finish(self) -> None:
        for key in self.entry:
            if key not in self.asked:
                self.fail(f'unknown field "{key}"')


def json_text(value: object) -> str:
    try:
        return json.dumps(value)
    except (TypeError, ValueError):
        return repr(value)


def is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def check_name(fields: Fields, name: str) -> None:
    if not 1 <= len(name) <= 100 or not set(name) <= LETTERS:
        fields.fail(f'expected "name" to be up to 100 letters, digits and _, found {json_text(name)}')


def of_scale(fields: Fields, plane: Plane) -> Plane:
    if max(plane.up, plane.down) > MOST_SCALE:
        fields.fail(f"expected planes of at most {MOST_SCALE} times or a {MOST_SCALE}th of the frame's sides, found "
                    f"{plane.up}/{plane.down}")
    return plane


def of_channels(fields: Fields, channels: int) -> int:
    if channels > MOST_CHANNELS:
        fields.fail(f"expected at most {MOST_CHANNELS} channels, found {channels}")
    return channels


def check_groups(fields: Fields, groups: int, what: str, *channels: int) -> None:
    for n in channels:
        if n % groups:
            fields.fail(f'expected "{what}" to divide the {n} channels, found {groups}')


def check_window(fields: Fields, kernel: int, stride: int, padding: int, dilation: int = 1) -> None:
    extent = (kernel - 1) * dilation + 1
    if not 2 * padding < extent <= 2 * padding + stride:
        fields.fail(f"expected twice the padding to be less than the kernel's extent {extent} and at least that less the stride "
                    f"{stride}, so that a side of n strides becomes n; found the padding {padding}")


def epsilon(fields: Fields) -> None:
    fields.number("epsilon", 1e-12, 1, 1e-5)


def convolution(fields: Fields, plane: Plane) -> Plane:
    channels = fields.integer("channels", 1, MOST_CHANNELS)
    kernel = fields.integer("kernel", 1, MOST_KERNEL)
    stride = fields.integer("stride", 1, MOST_FACTOR, 1)
    dilation = fields.integer("dilation", 1, MOST_KERNEL, 1)
    padding = fields.integer("padding", 0, MOST_KERNEL**2, (kernel - 1) * dilation // 2)
    groups = fields.integer("groups", 1, MOST_CHANNELS, 1)
    fields.boolean("bias", True)
    check_window(fields, kernel, stride, padding, dilation)
    check_groups(fields, groups, "groups", plane.channels, channels)
    return of_scale(fields, plane.scaled(1, stride))._replace(channels=channels)


def norm(fields: Fields, plane: Plane) -> Plane:
    epsilon(fields)
    return plane


def group_norm(fields: Fields, plane: Plane) -> Plane:
    check_groups(fields, fields.integer("groups", 1, MOST_CHANNELS), "groups", plane.channels)
    return norm(fields, plane)


def activation(fields: Fields, plane: Plane) -> Plane:
    return plane


def leaky_relu(fields: Fields, plane: Plane) -> Plane:
    fields.number("slope", -10, 10, 0.01)
    return plane


def pixel_shuffle(fields: Fields, plane: Plane) -> Plane:
    factor = fields.integer("factor", 2, MOST_FACTOR)
    if plane.channels % factor**2:
        fields.fail(f"expected a multiple of {factor**2} channels, found {plane.channels}")
    return of_scale(fields, plane.scaled(factor, 1))._replace(channels=plane.channels // factor**2)


def pixel_unshuffle(fields: Fields, plane: Plane) -> Plane:
    factor = fields.integer("factor", 2, MOST_FACTOR)
    return of_scale(fields, plane.scaled(1, factor))._replace(channels=of_channels(fields, plane.channels * factor**2))


def up_sample(fields: Fields, plane: Plane) -> Plane:
    fields.choice("mode", ("nearest", "bilinear"))
    return of_scale(fields, plane.scaled(fields.integer("factor", 2, MOST_FACTOR), 1))


def max_pool(fields: Fields, plane: Plane) -> Plane:
    kernel = fields.integer("kernel", 1, MOST_KERNEL)
    stride = fields.integer("stride", 1, MOST_FACTOR, kernel)
    check_window(fields, kernel, stride, fields.integer("padding", 0, MOST_KERNEL // 2, 0))
    return of_scale(fields, plane.scaled(1, stride))


def average_pool(fields: Fields, plane: Plane) -> Plane:
    fields.boolean("count_padding", True)
    return max_pool(fields, plane)


def sub_sampled(fields: Fields, plane: Plane) -> Plane:
    by = fields.integer("sub_sample", 1, MOST_FACTOR, 1)
    return plane._replace(multiple=math.lcm(plane.multiple, of_scale(fields, plane.scaled(1, by)).wants(1)))


def non_local(fields: Fields, plane: Plane) -> Plane:
    fields.choice("mode", MODES)
    reach = fields.choice("reach", REACHES)
    fields.integer("channels", 1, MOST_CHANNELS, max(1, plane.channels // 2))
    fields.boolean("bias", True)
    fields.boolean("norm", False)
    epsilon(fields)
    if reach == "temporal":
        fields.take("sub_sample", 1, '1 where "reach" is "temporal"', lambda n: n == 1 and not isinstance(n, bool))
    return sub_sampled(fields, plane)


def self_attention(fields: Fields, plane: Plane) -> Plane:
    inner = fields.integer("channels", 1, MOST_CHANNELS, max(1, plane.channels // 8))
    fields.integer("value_channels", 1, MOST_CHANNELS, inner)
    fields.boolean("bias", False)
    return sub_sampled(fields, plane)


def attention(fields: Fields, plane: Plane) -> Plane:
    inner = fields.integer("channels", 1, MOST_CHANNELS, plane.channels)
    check_groups(fields, fields.integer("heads", 1, MOST_CHANNELS, 1), "heads", inner)
    fields.boolean("bias", True)
    fields.boolean("residual", True)
    return plane


def window_attention(fields: Fields, plane: Plane) -> Plane:
    window = fields.integer("window", 2, MOST_WINDOW)
    attention(fields, plane)
    pairs = fields.entry.get("heads", 1) * window**4
    if fields.boolean("relative_bias", False) and pairs > MOST_PAIRS:
        fields.fail(f'expected "relative_bias" of at most {MOST_PAIRS} pairs (heads window^4), found {pairs}')
    return plane._replace(multiple=math.lcm(plane.multiple, plane.wants(window)))


def sum_or_product(fields: Fields, planes: list[Plane]) -> Plane:
    if len(planes) != 2:
        fields.fail(f"expected two inputs, found {len(planes)}")
    check_alike(fields, *planes)
    return planes[0]


def concatenate(fields: Fields, planes: list[Plane | None]) -> Plane:
    """None stands for the condition."""
    known = [plane for plane in planes if plane]
    if len(planes) < 2 or not known:
        fields.fail('expected two inputs or more, one of them not "condition"')
    for plane in known:
        check_alike(fields, known[0], plane._replace(channels=known[0].channels))
    channels = sum(plane.channels if plane else 1 for plane in planes)
    return known[0]._replace(channels=of_channels(fields, channels))


def check_alike(fields: Fields, a: Plane, b: Plane) -> None:
    if a[:3] != b[:3]:
        fields.fail(f"expected inputs of one shape, found {a} and {b}")


# What reads the fields of a type, and says what such a layer writes.
ONE_INPUT = {
    "convolution": convolution, "batch_norm": norm, "layer_norm": norm, "group_norm": group_norm,
    **{kind: activation for kind in ("relu", "prelu", "gelu", "silu", "sigmoid", "tanh")}, "leaky_relu": leaky_relu,
    "pixel_shuffle": pixel_shuffle, "pixel_unshuffle": pixel_unshuffle, "max_pool": max_pool, "average_pool": average_pool,
    "up_sample": up_sample, "non_local": non_local, "self_attention": self_attention, "attention": attention,
    "window_attention": window_attention,
}
SEVERAL_INPUTS = {"add": sum_or_product, "multiply": sum_or_product, "concatenate": concatenate}


def inputs_of(layer: dict, before: str) -> list[str]:
    inputs = layer.get("inputs", before)
    return inputs if isinstance(inputs, list) else [inputs]


def check_told(fields: Fields, known: dict) -> None:
    """Whether a power of all conditions is a number."""
    scale, power = (np.float64(np.float32(known[key])) for key in ("scale", "power"))
    with np.errstate(all="ignore"):
        told = np.float32([(known[key] * scale) ** power for key in ("minimum", "maximum")])
    if not np.isfinite(told).all() or (power != 1 and not (known["minimum"] > 0 and scale > 0)):
        fields.fail('expected "power" to be 1, or "minimum" and "scale" to be positive and the result finite')


def check_condition(entry: object) -> None:
    fields = Fields('"condition"', entry)
    check_name(fields, fields.text("name"))
    known = {"minimum": fields.number("minimum", -1e6, 1e6, 0)}
    known["maximum"] = fields.number("maximum", known["minimum"], 1e6)
    fields.number("default", known["minimum"], known["maximum"], known["minimum"])
    known |= {"scale": fields.number("scale", -1e6, 1e6, 1), "power": fields.number("power", -4, 4, 1)}
    fields.finish()
    check_told(fields, known)


def check_input(entry: object) -> dict[str, Plane | None]:
    """What layers may read from the beginning."""
    fields = Fields('"input"', entry)
    written = {"input": Plane(fields.integer("channels", 1, MOST_CHANNELS))}
    fields.integer("frames", 1, MOST_FRAMES, 1)
    if "range" in fields.entry:
        fields.take("range", None, "two numbers from -1e6 to 1e6, the second greater by 1e-6 and by a 10,000th of either", is_range)
    if "condition" in fields.entry:
        check_condition(fields.take("condition", None, "an object", lambda value: isinstance(value, dict)))
        written["condition"] = None
    fields.choice("border", ("zero", "mirror"))
    fields.finish()
    return written


def is_range(value: object) -> bool:
    if not (isinstance(value, (list, tuple)) and len(value) == 2 and all(is_number(n) for n in value)):
        return False
    low, high = value
    return low >= -1e6 and high <= 1e6 and high - low >= max(1e-6, 1e-4 * abs(low), 1e-4 * abs(high))


def check_layer(number: int, layer: object, before: str, written: dict[str, Plane | None]) -> Plane:
    fields = Fields(f"layer {number}", layer)
    name = fields.text("name")
    check_name(fields, name)
    if name in written or name == "condition":
        fields.fail(f'its name "{name}" is taken')
    fields.where = f'layer "{name}"'
    kind = fields.take("type", None, "one of " + ", ".join(sorted(ONE_INPUT | SEVERAL_INPUTS)),
                       lambda value: isinstance(value, str) and value in ONE_INPUT | SEVERAL_INPUTS)
    fields.take("inputs", before, f"a name, or a list of 1 to {MOST_INPUTS}",
                lambda value: isinstance(value, str) or (isinstance(value, list) and 1 <= len(value) <= MOST_INPUTS))
    inputs = inputs_of(layer, before)
    for source in inputs:
        if not isinstance(source, str) or source not in written:
            fields.fail(f"expected an input, or a layer before this one, found {json_text(source)}")
        if source == "condition" and kind != "concatenate":
            fields.fail('only "concatenate" takes "condition" as an input')
    planes = [written[source] for source in inputs]
    if kind in ONE_INPUT and len(planes) != 1:
        fields.fail(f"expected one input, found {len(planes)}")
    plane = SEVERAL_INPUTS[kind](fields, planes) if kind in SEVERAL_INPUTS else ONE_INPUT[kind](fields, planes[0])
    fields.finish()
    multiple = math.lcm(plane.multiple, plane.wants(1), *(source.multiple for source in written.values() if source))
    if multiple > MOST_MULTIPLE:
        fields.fail(f"expected strides and windows with a common multiple of at most {MOST_MULTIPLE}, found {multiple}")
    return plane._replace(multiple=multiple)


def check_temporal_mean(fields: Fields, plane: Plane) -> None:
    """The mean with the frame before, which is the library's: training knows nothing of it."""
    if "temporal_mean" not in fields.entry:
        return
    inner = Fields('"temporal_mean"', fields.take("temporal_mean", None, "an object", lambda value: isinstance(value, dict)))
    inner.number("h", 0.5, 255)
    inner.finish()
    if (frames := fields.entry["input"].get("frames", 1)) == MOST_FRAMES:
        fields.fail(f'expected at most {MOST_FRAMES - 1} frames with "temporal_mean", which looks at one more, found {frames}')
    if plane.channels > MOST_MEAN_CHANNELS or plane[1:3] != (1, 1):
        fields.fail(f'expected an output of 1 to {MOST_MEAN_CHANNELS} channels and the frame\'s size, since "temporal_mean" moves it, '
                    f"found {plane}")


def check_output(fields: Fields, output: str, written: dict[str, Plane | None]) -> None:
    plane, frame = written.get(output), written["input"]
    if plane is None or output == "input":
        fields.fail(f'expected "output" to be a layer, found "{output}"')
    if fields.boolean("residual", False) and plane[:3] != frame[:3]:
        fields.fail(f'expected an output of {frame.channels} channels and the frame\'s size, since "residual" adds it to the input, '
                    f"found {plane}")
    check_temporal_mean(fields, plane)


def check_mirrored(layers: list[dict], output: str) -> None:
    """Only convolutions may read the frame, and what is unshuffled from it."""
    frame, before = {"input"}, "input"
    for layer in layers:
        if not frame.isdisjoint(inputs_of(layer, before)):
            if layer["type"] == "pixel_unshuffle":
                frame.add(layer["name"])
            elif layer["type"] != "convolution":
                raise ValueError(f'layer "{layer["name"]}": expected the input, and what is unshuffled from it, to be read by '
                                 'convolutions alone where "border" is "mirror"')
        before = layer["name"]
    if output in frame:
        raise ValueError('expected an output that is more than the input where "border" is "mirror"')


def check(description: object) -> dict[str, Plane | None]:
    """Refuses with a ValueError what the library would not read. Gives what each layer writes."""
    fields = Fields("description", description)
    written = check_input(fields.take("input", None, "an object", lambda value: isinstance(value, dict)))
    fields.choice("precision", ("any", "f32"))
    layers, before, read = fields.listed("layers", 1, MOST_LAYERS), "input", set()
    for number, layer in enumerate(layers):
        plane = check_layer(number, layer, before, written)
        read |= set(inputs_of(layer, before))
        before = layer["name"]
        written[before] = plane
    output = fields.text("output", before)
    check_output(fields, output, written)
    fields.finish()
    for name in written.keys() - read - {output, "input"}:
        raise ValueError(f'layer "{name}": nothing reads what it writes')
    if description["input"].get("border") == "mirror":
        check_mirrored(layers, output)
    if len(json.dumps(description, separators=(",", ":"))) > MOST_BYTES:
        fields.fail(f"expected at most {MOST_BYTES} bytes of JSON")
    return written
