#!/usr/bin/python3
"""Gathers the photographs among the wallpapers of four Debian packages, gray and two to four times smaller: so much as to be
sharp, and free of noise and JPEG's blocks. compressed.py --photographs moves windows over them.

The packages are installed by `tools/install photographs`, or unpacked below ROOT (dpkg -x). /usr/share/doc/PACKAGE/copyright
names their photographers and licences (CC BY 4.0, CC BY-SA 3.0 and 4.0, CC0, GPL); their drawings are left out.

With --more, 29 photographs of other packages too, of streets, people and things where those are mostly of nature. What these
packages are for nobody needs here: they are unpacked, not installed.

    apt-get download $(photographs.py --packages) && for file in *.deb; do dpkg -x $file ROOT; done

With --textures, the 18 roughest of these and of scikit-image's grass and gravel, which nothing has to be smoothed in, into a
folder of their own."""
import argparse
import sys
from pathlib import Path

import cv2
import numpy as np

from samples import read_luma

# The packages: lomiri-wallpapers-16.04 and lomiri-wallpapers-20.04; mate-backgrounds; plasma-workspace-wallpapers.
LOMIRI = """
    Bridge_by_Sander_Klootwijk Dragonfly_by_Bolly Picture_0B_by_freespace Picture_1A_by_freespace Wine_by_Jakkub_Mede
    aitzgorri_by_Aitzol_Berasategi free_by_Peter_Nerlich friends_by_Aitzol_Berasategi greentock_by_Peter_Nerlich
    life_by_Aitzol_Berasategi picosdeeuropa_by_Aitzol_Berasategi seeding_by_Clements_Engelhardt
    sunset_by_Aitzol_Berasategi Kleiber_by_Lukas_Baubkus
""".split()
MATE = """
    Aqua Blinds Dune FreshFlower Garden GreenMeadow LadyBird RainDrops Storm TwoWings Wood YellowFlower
""".split()
PLASMA = {
    "2560x1600": "BytheWater ColdRipple ColorfulCups EveningGlow FallenLeaf Grey Kite OneStandsOut Path".split(),
    "5120x2880": ["Volna"],
}
FILES = [
    *(Path("usr/share/backgrounds", f"{name}.jpg") for name in LOMIRI),
    *(Path("usr/share/backgrounds/mate/nature", f"{name}.jpg") for name in MATE),
    *(Path("usr/share/wallpapers", name, "contents/images", f"{size}.jpg") for size, names in PLASMA.items() for name in names),
]
DOC, PYTHON = Path("usr/share/doc"), Path("usr/lib/python3/dist-packages")
MORE = {
    "forensics-samples-files": [
        Path("usr/share/forensics-samples/original-files", name)
        for name in (
            "pic1/IMG-20191006-WA0002.jpg", "pic1/IMG_1054.JPG", "pic1/IMG_20200827_231612.jpg", "pic2/IMG_20191224_234846.jpg",
            "pic2/IMG_20200124_231153.jpg", "pic2/IMG_20200608_111614.jpg",
        )
    ],
    "kphotoalbum": [Path("usr/share/kphotoalbum/demo", f"{name}.jpg") for name in ("bar55_2", "wayne")],
    "labelme-examples": [DOC / "labelme-examples/examples/video_annotation/data_annotated/00000100.jpg"],
    "libjxl-testdata": [
        Path("usr/share/libjxl-testdata", name)
        for name in ("jxl/flower/flower.png", "external/wesaturate/500px/u76c0g_bliznaca_srgb8.png")
    ],
    "node-opencv": [DOC / "node-opencv/examples/files" / f"{name}.jpg" for name in ("car1", "car2")],
    "opencv-doc": [
        *(DOC / "opencv-doc/examples/data" / name for name in ("aloeL.jpg", "graf1.png", "leuvenA.jpg")),
        *(DOC / "opencv-doc/examples/text" / f"scenetext_segmented_word0{i}.jpg" for i in (1, 2)),
    ],
    "pd-extendedview": [DOC / "pd-extendedview/media/container.jpg"],
    "psychtoolbox-3-common": [
        Path("usr/share/psychtoolbox-3/PsychHardware/EyelinkToolbox/EyelinkDemos/SR-ResearchDemo/town.jpg")
    ],
    "python-kivy-examples": [
        Path("usr/share/kivy-examples/demo/pictures/images", f"{name}.jpg") for name in ("Wall", "faust_github")
    ],
    "python3-imageio": [PYTHON / "imageio/resources/images/astronaut.png"],
    "python3-skimage": [PYTHON / "skimage/data/motorcycle_left.png"],
    "renpy-demo": [Path("usr/share/games/renpy/demo/game/images", f"bg {name}.jpg") for name in ("washington", "whitehouse")],
    "stellarium-data": [Path("usr/share/stellarium/landscapes/garching", f"garching-gl{i}.png") for i in (1, 3, 4)],
}
TEXTURES = [PYTHON / "skimage/data" / name for name in ("grass.png", "gravel.png")]
MOST_TEXTURES = 18

LARGE = 2240  # samples of the longer side, from which on a picture is made ABOUT as large
ABOUT, LEAST_SCALE, USUAL_SCALE = 1500, 0.4, 0.6


def scale_of(side: int) -> float:
    return max(ABOUT / side, LEAST_SCALE) if side >= LARGE else USUAL_SCALE


def roughness(picture: np.ndarray) -> float:
    """The fine detail's deviation that 70 % of the picture exceed."""
    fine = picture.astype(np.float32) - cv2.GaussianBlur(picture.astype(np.float32), (0, 0), 1.5)
    return float(np.percentile(np.sqrt(np.maximum(cv2.blur(fine * fine, (24, 24)), 0)), 30))


def write(pictures: list[np.ndarray], out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    for i, picture in enumerate(pictures):
        cv2.imwrite(str(out / f"{i:02d}.png"), picture)


def reduced(picture: np.ndarray) -> np.ndarray:
    scale = scale_of(max(picture.shape))
    return cv2.resize(picture, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)


def gather(root: Path, out: Path, more: bool, textures: Path | None) -> None:
    files = FILES + [file for files in MORE.values() for file in files] if more else FILES
    missing = [file for file in files + (TEXTURES if textures else []) if not (root / file).is_file()]
    if missing:
        raise FileNotFoundError(f"{root / missing[0]}: expected a photograph, of a package installed or unpacked as --help says")
    photographs = [reduced(read_luma(root / file)) for file in files]
    write(photographs, out)
    if textures:
        photographs += [read_luma(root / file) for file in TEXTURES]
        write(sorted(photographs, key=roughness, reverse=True)[:MOST_TEXTURES], textures)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, nargs="?", metavar="FOLDER")
    parser.add_argument("--root", type=Path, default=Path("/"), help="below which the packages lie")
    parser.add_argument("--more", action="store_true", help="those of the other packages too")
    parser.add_argument("--textures", type=Path, metavar="FOLDER", help="for the roughest")
    parser.add_argument("--packages", action="store_true", help="print the other packages' names")
    options = parser.parse_args()
    if options.packages:
        print(*MORE)
        sys.exit()
    if not options.out:
        parser.error("expected FOLDER")
    try:
        gather(options.root, options.out, options.more, options.textures)
    except (OSError, ValueError) as error:
        sys.exit(f"photographs.py: {error}")
