"""A beam that is twisted and released, with the four sets of parameters of PBCM Fig. 8.

    python benchmarks/plastic_twist.py

Writes what twist remains to benchmarks/results/plastic_twist.json and a picture to docs/images. The paper has
no numbers: (a) is a plastic beam, (b) creeps faster, (c) yields later, (d) has its plastic strain limited.
"""

from __future__ import annotations

import json
from pathlib import Path

from PIL import Image

import supple
from supple.io.machine import machine
from supple_papers.plastic import ANGLE, SETS, SOLVERS, release_beam

REPOSITORY = Path(__file__).resolve().parents[1]
RESULTS = REPOSITORY / "benchmarks" / "results" / "plastic_twist.json"
PICTURE = REPOSITORY / "docs" / "images" / "plastic_twist.png"


def main() -> None:
    results: dict = {"machine": machine(), "angle": ANGLE}
    pictures = []
    for solver in SOLVERS:
        for name, plastic in SETS.items():
            angle, strain, rest, _ = release_beam(solver, **plastic)
            results[f"{solver}, {name}"] = {"twist_left": angle, "plastic_strain": strain}
            print(solver, name, round(angle, 3), round(strain, 3), flush=True)
            if solver == "pbd":
                picture = supple.render(
                    rest,
                    field="displacement",
                    camera=(20, 16),
                    size=(640, 420),
                    title=f"({name[0]}){name[1:]}",
                )
                pictures.append(Image.fromarray(picture))
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    canvas = Image.new("RGB", (1280, 840), "white")
    for k, image in enumerate(pictures):
        canvas.paste(image, (640 * (k % 2), 420 * (k // 2)))
    canvas.save(PICTURE)


if __name__ == "__main__":
    main()
