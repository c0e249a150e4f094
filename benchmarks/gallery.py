"""Solves and draws every scene of scenes/ for the gallery.

    python benchmarks/gallery.py                 # all of them: about ten minutes on two cores
    python benchmarks/gallery.py twist muscle    # some of them; the others stay as they are
    python benchmarks/gallery.py --redraw        # from the results that are there, without solving
    python benchmarks/gallery.py --figures       # solve, and leave pictures as they are

Pictures and films go to docs/gallery with a README.md that shows them, and results to
benchmarks/results/gallery.json, each with its machine and date. Results stay in results/gallery. Scenes that
read meshes or fabrics from $SUPPLE_DATA (../shared/meshes unless set) are skipped where these are not there,
and their pictures stay as they are.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import supple
from supple.runs.result_text import solver_name
from supple.runs.saved import SavedRun, load_run
from supple.solve.call_options import resolve_solver
from supple.support.text import format_cell_counts
from supple.view import Shape, film, picture

REPOSITORY = Path(__file__).resolve().parents[1]
SCENES, RESULTS = REPOSITORY / "scenes", REPOSITORY / "results" / "gallery"
GALLERY = REPOSITORY / "docs" / "gallery"
RESULTS_FILE = REPOSITORY / "benchmarks" / "results" / "gallery.json"

PICTURE_SIZE, FILM_SIZE = (1000, 750), (640, 480)
MOST_PICTURES = 30
"""Maximum of pictures in a film; longer films skip frames."""


def main() -> None:
    parser = argparse.ArgumentParser(description="Solve and draw the scenes of the gallery.")
    parser.add_argument("scenes", nargs="*", help="names of scenes; all of them unless given")
    parser.add_argument("--redraw", action="store_true", help="draw results that are there, without solving")
    parser.add_argument("--figures", action="store_true", help="solve, and leave pictures as they are")
    arguments = parser.parse_args()
    data = Path(os.environ.get("SUPPLE_DATA", REPOSITORY.parent / "shared" / "meshes"))
    names = sorted(path.stem for path in SCENES.glob("*.toml"))
    for name in arguments.scenes:
        if name not in names:
            parser.error(f"there is no scene {name}; there are {', '.join(names)}")
    results = json.loads(RESULTS_FILE.read_text()) if RESULTS_FILE.exists() else {}
    GALLERY.mkdir(parents=True, exist_ok=True)
    for name in arguments.scenes or names:
        os.environ["SUPPLE_DATA"] = str(folder_for(SCENES / f"{name}.toml", data))
        missing = missing_data(SCENES / f"{name}.toml")
        if missing:
            print(f"{name} is skipped: it needs {missing}; set SUPPLE_DATA to the folder that has it.")
            continue
        if not arguments.redraw:
            solve(name)
        elif not (RESULTS / name).exists():
            print(f"{name} is skipped: it has no results in {RESULTS.relative_to(REPOSITORY)} yet.")
            continue
        run = load_run(RESULTS / name)
        drawn = arguments.figures and name in results
        results[name] = {"file": results[name]["file"], **quantities_of(run)} if drawn else draw(name, run)
        RESULTS_FILE.write_text(
            json.dumps(dict(sorted(results.items())), indent=2, ensure_ascii=False) + "\n"
        )
    write_readme({name: results[name] for name in names if name in results})


def folder_for(scene: Path, data: Path) -> Path:
    """Folder of the meshes or fabrics of a scene: data, its subfolder meshes, or its parent with a folder
    hylc."""
    if "\nfabric = " in scene.read_text(encoding="utf-8"):
        return next((folder for folder in (data, data.parent) if (folder / "hylc").is_dir()), data)
    return data / "meshes" if (data / "meshes").is_dir() else data


def missing_data(scene: Path) -> str:
    """The first missing file or fabric of $SUPPLE_DATA that a scene reads, if any."""
    table = tomllib.loads(scene.read_text(encoding="utf-8"))
    for fabric in (cloth["fabric"] for cloth in table.get("cloth", []) if "fabric" in cloth):
        try:
            supple.load_fabric(fabric)
        except ValueError:
            return str(fabric)
    for word in scene.read_text(encoding="utf-8").split('"'):
        if word.startswith("$SUPPLE_DATA") and not Path(os.path.expandvars(word)).exists():
            return word
    return ""


def solve(name: str) -> None:
    print(f"{name}: solving")
    command = "from supple.cli import main; main()"
    options = ["--output", str(RESULTS / name), "--overwrite", "--no-picture", "--quiet"]
    scene = str((SCENES / f"{name}.toml").relative_to(REPOSITORY))
    done = subprocess.run([sys.executable, "-c", command, "run", scene, *options], cwd=REPOSITORY)
    if done.returncode:
        sys.exit(
            f"{name}: supple run ended with exit code {done.returncode}; the gallery shows what converges."
        )


def draw(name: str, run: SavedRun) -> dict[str, Any]:
    """Draw a picture, or a film of several frames or of a recovery."""
    print(f"{name}: drawing")
    is_motion = len(run.manifest["frames"]) > 1
    shapes: Sequence[Shape] = run.shapes() if is_motion else run.shapes([1])
    fps = min(1 / run.file.scene.dt, 20.0)
    if run.file.start is not None:
        shapes, fps = iterations(run), 8.0
    azimuth, elevation = run.file.view.camera
    view = run.file.view
    style: dict[str, Any] = {"title": run.title, "field": view.field, "camera": (azimuth, elevation)}
    style |= {"thickness": view.thickness, "names": view.names}
    if len(shapes) == 1:
        path = GALLERY / f"{name}.png"
        picture(path, run.model, shapes[0], size=PICTURE_SIZE, **style)
        with_palette(path)
    else:
        path = GALLERY / f"{name}.webp"
        chosen = np.linspace(0, len(shapes) - 1, min(len(shapes), MOST_PICTURES)).round().astype(int)
        selected = [shapes[i] for i in chosen]
        pace = fps * len(selected) / len(shapes)
        film(path, run.model, selected + selected[-1:] * round(fps), size=FILM_SIZE, fps=pace, **style)
    return {"file": path.name, **quantities_of(run)}


def with_palette(path: Path) -> None:
    """Halve the size of a PNG file by a palette of 256 colors."""
    image = Image.open(path).convert("RGB")
    palette = image.quantize(256, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    image.quantize(palette=palette, dither=Image.Dither.FLOYDSTEINBERG).save(path, optimize=True)


def iterations(run: SavedRun) -> list[Shape]:
    """Positions after increasing numbers of iterations, each solved from the start."""
    total = run.manifest["frames"][0]["iterations"]
    counts = np.unique(np.round(np.geomspace(1, total, 26)).astype(int))
    start, solver = run.file.initial_positions(run.model), resolve_solver(None, run.file)
    assert start is not None
    shapes = [Shape(start, "the start")] * 6
    for count in counts:
        stop = supple.StopCriteria(run.manifest["solver"]["tolerance"], int(count))
        result = supple.equilibrium(run.model, solver=solver, initial=start, stop=stop)
        caption = (
            f"{solver_name(run.manifest)} · after {count} iterations · relative residual "
            f"{result.report.relative_residual:.1e}"
        )
        shapes.append(Shape(result.positions, caption))
    return shapes


def quantities_of(run: SavedRun) -> dict[str, Any]:
    manifest = run.manifest
    frames = manifest["frames"]
    return {
        "title": run.title,
        "vertices": manifest["scene"]["vertices"],
        "tets": manifest["scene"]["tets"],
        "triangles": manifest["scene"].get("triangles", 0),
        "solver": solver_name(manifest),
        "frames": len(frames),
        "iterations": sum(frame["iterations"] for frame in frames),
        "worst_relative_residual": max(frame["relative_residual"] for frame in frames),
        "seconds": sum(frame["seconds"] for frame in frames),
        "machine": manifest["machine"],
        "date": manifest["date"],
    } | ({"busy": True} if is_busy() else {})


def is_busy() -> bool:
    """True if other processes make times on this machine unreliable."""
    return hasattr(os, "getloadavg") and os.getloadavg()[0] > 1.5 * (os.cpu_count() or 1)


def write_readme(results: dict[str, dict[str, Any]]) -> None:
    """Write docs/gallery/README.md, with two scenes per row."""
    cells = [cell(name, entry) for name, entry in results.items()]
    rows = "\n".join(f"<tr>\n{''.join(cells[i : i + 2])}</tr>" for i in range(0, len(cells), 2))
    machines = sorted({f"{e['machine']['cpu']}, {e['machine']['cores']} cores" for e in results.values()})
    text = f"""# Gallery

`make gallery` ([benchmarks/gallery.py](../../benchmarks/gallery.py)) solves every scene of
[scenes](../../scenes) until the relative residual meets its tolerance, and draws the result. Seconds are
solve times in float64 on: {"; ".join(machines)}.

| symbol | meaning |
|---|---|
| dot | pinned or moved vertex |
| open dot | vertex pinned along some directions only |
| red dot | contact |
| orange line | attachment or cable |
| translucent shape | obstacle |

## All scenes

<table>
{rows}
</table>
"""
    (GALLERY / "README.md").write_text(text, encoding="utf-8")


def say_seconds(seconds: float) -> str:
    """Seconds with two digits, or rounded to integers above."""
    if seconds < 0.001:
        return "below 0.001 s"
    return f"{seconds:.2g} s" if seconds < 99.5 else f"{seconds:,.0f} s"


def cell(name: str, entry: dict[str, Any]) -> str:
    frames = f"{entry['frames']} frames, " if entry["frames"] > 1 else ""
    seconds = say_seconds(entry["seconds"])
    busy = " on a busy machine" if entry.get("busy") else ""
    return f"""<td width="50%" valign="top">
<img src="{entry["file"]}" alt="{entry["title"]}" width="100%"><br>
<b>{entry["title"]}</b>, <a href="../../scenes/{name}.toml">{name}.toml</a><br>
{entry["vertices"]:,} vertices, {format_cell_counts(entry)} · {frames}{entry["solver"]},
{entry["iterations"]:,} iterations, relative residual {entry["worst_relative_residual"]:.0e}, {seconds}{busy}
</td>
"""


if __name__ == "__main__":
    main()
