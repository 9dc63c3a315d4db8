#!/usr/bin/python3
"""Gathers the photographs among the wallpapers of four Debian packages, gray and two to four times smaller: so much as to be
sharp, and free of noise and JPEG's blocks. compressed.py --photographs moves windows over them.

The packages are installed by `tools/install photographs`, or unpacked below ROOT (dpkg -x). /usr/share/doc/PACKAGE/copyright
names their photographers and licences (CC BY 4.0, CC BY-SA 3.0 and 4.0, CC0, GPL); their drawings are left out."""
import argparse
import sys
from pathlib import Path

import cv2

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

LARGE = 2240  # samples of the longer side, from which on a picture is made ABOUT as large
ABOUT, LEAST_SCALE, USUAL_SCALE = 1500, 0.4, 0.6


def scale_of(side: int) -> float:
    return max(ABOUT / side, LEAST_SCALE) if side >= LARGE else USUAL_SCALE


def gather(root: Path, out: Path) -> None:
    missing = [file for file in FILES if not (root / file).is_file()]
    if missing:
        raise FileNotFoundError(f"{root / missing[0]}: expected a photograph, as `tools/install photographs` installs it")
    out.mkdir(parents=True, exist_ok=True)
    for i, file in enumerate(FILES):
        picture = read_luma(root / file)
        scale = scale_of(max(picture.shape))
        small = cv2.resize(picture, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
        cv2.imwrite(str(out / f"{i:02d}.png"), small)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, metavar="FOLDER")
    parser.add_argument("--root", type=Path, default=Path("/"), help="below which the packages lie")
    options = parser.parse_args()
    try:
        gather(options.root, options.out)
    except (OSError, ValueError) as error:
        sys.exit(f"photographs.py: {error}")
