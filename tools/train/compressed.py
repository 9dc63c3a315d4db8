#!/usr/bin/python3
"""Makes the pairs that restore.py learns from: pictures in motion, clean, and as a camera and x264 leave them.

A clip is 40 tiles of 160x160 side by side, each a window that moves over a training picture (see samples.py; none is of
the Kodak set) or over one of --photographs: still, panned, zoomed a little, shaken. The pictures of a clip are about as
sharp as one another, from photographs made smaller to photographs made larger, which film and cameras resemble. Two fifths
of the clips get sensor noise, a fifth mild blur; x264 codes all of them, in constant quality from 24 to 40. Luma alone, of
full range. Of 40 frames every fourth is kept, or all but the first four: x264 looks so far ahead, and codes better what
stands still for long.

FOLDER/clean.npy and FOLDER/coded.npy hold the clips: bytes [clips, frames, 800, 1280]. FOLDER/clips.json says how each was
made. ffmpeg does the coding."""
import argparse
import json
import subprocess
import sys
from pathlib import Path

import cv2
import numpy as np

from samples import HELD_OUT, KODAK_IN_LIVE1, SETS, picture_files, psnr, read_luma, to_8_bit

TILE, COLUMNS, ROWS = 160, 8, 5
FRAMES, KEPT, ALL_KEPT = 40, slice(3, None, 4), slice(4, None)
FPS = 25
LEAST_SIDE = 90  # of a picture: mirrored, it fills a tile
COLOUR_SETS_WEIGHT = 8  # their pictures are larger and sharper, and there are ten times fewer of them


def pictures(data: Path, held_out: bool) -> list[tuple[np.ndarray, float]]:
    """With the weight that each is drawn with."""
    left_out = {name: KODAK_IN_LIVE1 if name == "live1" else [] for name in SETS}
    found = []
    for name in SETS:
        weight = 1 if name == "bsd400_gray" else COLOUR_SETS_WEIGHT
        for path in picture_files(data / name):
            if path.stem not in left_out[name] and (path.stem in HELD_OUT[name]) == held_out:
                found.append((read_luma(path), weight))
    return found


def photographs(folder: Path) -> list[tuple[np.ndarray, float]]:
    return [(read_luma(path), 1.0) for path in picture_files(folder)]


def varied(picture: np.ndarray, size: float, rng: np.random.Generator) -> np.ndarray:
    """About `size` times as large, with other contrast, brightness and sharpness."""
    scale = max(size * rng.uniform(0.8, 1.25), LEAST_SIDE / min(picture.shape))
    picture = cv2.resize(picture, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA if scale < 1 else cv2.INTER_CUBIC)
    if rng.random() < 0.35:  # as cameras sharpen
        soft = cv2.GaussianBlur(picture, (0, 0), rng.uniform(0.6, 1.5))
        amount = rng.uniform(0.2, 1)
        picture = cv2.addWeighted(picture, 1 + amount, soft, -amount, 0)
    if rng.random() < 0.4:
        contrast = rng.uniform(0.4, 1)
        picture = to_8_bit(picture * contrast + rng.uniform(0, 255 * (1 - contrast)))
    if rng.random() < 0.5:
        picture = picture[:, ::-1]
    return np.ascontiguousarray(picture.T if rng.random() < 0.2 else picture)


def moving_window(picture: np.ndarray, size: float, rng: np.random.Generator) -> list[np.ndarray]:
    """FRAMES of them; almost half stand still."""
    picture = varied(picture, size, rng)
    height, width = picture.shape
    centre = np.array([rng.uniform(TILE / 2, max(side - TILE / 2, TILE / 2 + 1e-3)) for side in (width, height)])
    if rng.random() < 0.45:
        speed, zoom, shake, centre = np.zeros(2), 1.0, 0.0, np.round(centre)
    else:
        speed, shake = rng.normal(0, 1, 2), rng.choice([0, 0.3])
        zoom = 1 if rng.random() < 0.6 else rng.uniform(0.99, 1.01)
    windows = []
    for t in np.arange(FRAMES) - FRAMES / 2:
        x, y = centre + speed * t + shake * rng.standard_normal(2)
        scale = zoom**t
        to_picture = np.array([[scale, 0, x - scale * (TILE - 1) / 2], [0, scale, y - scale * (TILE - 1) / 2]])
        windows.append(
            cv2.warpAffine(
                picture,
                to_picture,
                (TILE, TILE),
                flags=cv2.INTER_CUBIC | cv2.WARP_INVERSE_MAP,
                borderMode=cv2.BORDER_REFLECT_101,
            )
        )
    return windows


def clean_clip(pool: list[tuple[np.ndarray, float]], octaves: list[float], rng: np.random.Generator) -> np.ndarray:
    weights = np.array([weight for _, weight in pool])
    drawn = rng.choice(len(pool), COLUMNS * ROWS, p=weights / weights.sum())
    size = 2 ** rng.uniform(*octaves)
    tiles = np.array([moving_window(pool[i][0], size, rng) for i in drawn])  # [tile, frame, y, x]
    rows = tiles.reshape(ROWS, COLUMNS, FRAMES, TILE, TILE).transpose(2, 0, 3, 1, 4)
    return rows.reshape(FRAMES, ROWS * TILE, COLUMNS * TILE)


def blurred(frames: np.ndarray, blur: float) -> np.ndarray:
    return np.array([cv2.GaussianBlur(frame, (0, 0), blur) for frame in frames]) if blur > 0 else frames


def spoilt(clean: np.ndarray, how: dict, rng: np.random.Generator) -> np.ndarray:
    frames = blurred(clean.astype(np.float32), how["blur"])
    if how["sigma"] > 0:
        noise = blurred(rng.standard_normal(frames.shape, np.float32), how["grain"])
        frames += how["sigma"] / noise.std() * noise
    return to_8_bit(frames)


def ffmpeg(arguments: list[str], given: bytes) -> bytes:
    command = ["ffmpeg", "-v", "error", *arguments]
    return subprocess.run(command, input=given, stdout=subprocess.PIPE, check=True).stdout


def coded(frames: np.ndarray, quality: float, preset: str = "medium", key_frames: int = 250) -> np.ndarray:
    """As x264 gives gray frames back: `quality` is its crf."""
    count, height, width = frames.shape
    raw = ["-f", "rawvideo", "-pix_fmt", "gray"]
    x264 = ["-c:v", "libx264", "-preset", preset, "-crf", f"{quality:.1f}", "-g", str(key_frames)]
    size = ["-s", f"{width}x{height}", "-r", str(FPS)]
    file = ffmpeg([*raw, *size, "-i", "-", "-vf", "format=yuvj420p", *x264, "-f", "matroska", "-"], frames.tobytes())
    return np.frombuffer(ffmpeg(["-i", "-", *raw, "-"], file), np.uint8).reshape(count, height, width)


def any_video(noisy: float, rng: np.random.Generator) -> dict:
    """How a clip is spoilt."""
    return {
        "blur": rng.uniform(0.4, 0.9) if rng.random() < 0.2 else 0.0,
        "sigma": rng.uniform(2, 14) if rng.random() < noisy else 0.0,
        "grain": rng.uniform(0.3, 0.8) if rng.random() < 0.3 else 0.0,
        "quality": float(rng.uniform(24, 40) if rng.random() < 0.5 else rng.uniform(30, 40)),
        "preset": str(rng.choice(["veryfast", "medium"])),
        "key_frames": int(rng.choice([12, 60, 250])),
    }


def low_rate(noisy: float, rng: np.random.Generator) -> dict:
    """About crf 35, and mostly what x264 does unless it is told otherwise; noise that is seen, where there is some."""
    return {
        "blur": rng.uniform(0.4, 0.9) if rng.random() < 0.1 else 0.0,
        "sigma": rng.uniform(6, 14) if rng.random() < noisy else 0.0,
        "grain": rng.uniform(0.3, 0.8) if rng.random() < 0.1 else 0.0,
        "quality": float(np.clip(rng.normal(35, 1.8), 29, 40)),
        "preset": str(rng.choice(["veryfast", "medium", "medium", "medium"])),
        "key_frames": int(rng.choice([25, 60, 250, 250, 250])),
    }


def make(options: argparse.Namespace) -> None:
    pool = photographs(options.photographs) if options.photographs else pictures(options.data, options.held_out)
    rng = np.random.default_rng(options.seed)
    options.out.mkdir(parents=True, exist_ok=True)
    kept = ALL_KEPT if options.all_frames else KEPT
    shape = (options.clips, len(range(FRAMES)[kept]), ROWS * TILE, COLUMNS * TILE)
    clean, code = (np.lib.format.open_memmap(options.out / f"{name}.npy", "w+", np.uint8, shape) for name in ("clean", "coded"))
    made = []
    for i in range(options.clips):
        how = (low_rate if options.low_rate else any_video)(options.noisy, rng)
        frames = clean_clip(pool, options.octaves, rng)
        clean[i] = frames[kept]
        code[i] = coded(spoilt(frames, how, rng), how["quality"], how["preset"], how["key_frames"])[kept]
        made.append(how | {"psnr": psnr(code[i], clean[i])})
        print(f"\r{i + 1} of {options.clips} clips", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    (options.out / "clips.json").write_text(json.dumps(made, indent=1))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, metavar="FOLDER")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--data", type=Path, help="the folder with the sets of pictures")
    source.add_argument("--photographs", type=Path, metavar="FOLDER", help="of photographs.py, in place of those sets")
    parser.add_argument("--clips", type=int, default=48)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--octaves", type=float, nargs=2, default=[-1.1, 1], help="how much larger pictures become, log2")
    parser.add_argument("--noisy", type=float, default=0.4, help="the share of clips with sensor noise")
    parser.add_argument("--low-rate", action="store_true", help="all clips at about crf 35, with x264's usual settings")
    parser.add_argument("--all-frames", action="store_true", help="keep all frames but the first four, in place of every fourth")
    parser.add_argument("--held-out", action="store_true", help="of the pictures that are held out")
    make(parser.parse_args())
