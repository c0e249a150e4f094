"""Numbers of colors of elements, clusters and cells, with pictures [BNH Fig. 4]."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

import supple
from supple.view import FIELDS
from supple_papers.internals import color_groups, element_groups
from supple_papers.measurements import Claim, Measurements, Quantities
from supple_papers.registry import shows

GROUP_SCALE = 0.8
"""Scale of each group in pictures, so that groups can be distinguished."""


@shows("bnh-fig4")
def partitions(measurements: Measurements) -> str:
    meshes = {"block of 10³ cells": supple.block(10), "ball": supple.ball(resolution=6)}
    counts = {name: measurements.part(name, partial(count_colors, mesh)) for name, mesh in meshes.items()}
    if not measurements.pictures:
        for size, what in ((1, "colors of single elements"), (5, "colors of clusters of 5 elements")):
            draw(measurements, meshes["ball"], size, what)
    block = counts["block of 10³ cells"]
    part = block["clusters of 5"] / block["single elements"]
    return measurements.judge(
        f"clusters need {part:.0%} of the colors of single elements (paper: 24 to 43 %); the "
        f"cells of a block need {block['cells']}. Smallest degree last on vertices, section 6.2, has "
        f"{block['single elements, smallest last']} and {block['clusters of 5, smallest last']} colors of a "
        f"block, of a ball {counts['ball']['single elements, smallest last']} and "
        f"{counts['ball']['clusters of 5, smallest last']}.",
        Claim("clusters need less than half the colors of single elements, on both bodies", fewer(counts)),
        Claim("cells of a block need 8 colors [section 4.1]", block["cells"] == 8),
        Claim("smallest degree last never increases the colors of single elements", not_more(counts)),
    )


def fewer(counts: dict[str, Quantities]) -> bool:
    return all(row["clusters of 5"] < 0.5 * row["single elements"] for row in counts.values())


def not_more(counts: dict[str, Quantities]) -> bool:
    name = "single elements"
    return all(row[f"{name}, smallest last"] <= row[name] for row in counts.values())


def count_colors(mesh: supple.TetMesh) -> Quantities:
    tets, n = np.asarray(mesh.tets), len(mesh.points)

    def colors(size: int, **how: bool) -> int:
        return int(color_groups(element_groups(tets, n, size, **how), tets, n).max()) + 1

    counts = {
        "single elements": colors(1),
        "clusters of 5": colors(5),
        "single elements, smallest last": colors(1, smallest_last=True),
        "clusters of 5, smallest last": colors(5, smallest_last=True),
    }
    try:
        return counts | {"cells": colors(1, cells=True)}
    except ValueError:
        return counts


def draw(measurements: Measurements, mesh: supple.TetMesh, size: int, caption: str) -> None:
    """Save a picture of groups of `size` elements, colored and separated from each other."""
    tets, points = np.asarray(mesh.tets), np.asarray(mesh.points)
    groups = element_groups(tets, len(points), size)
    colors = color_groups(groups, tets, len(points))
    member = groups >= 0
    of_group = np.empty(len(tets), np.int64)
    of_group[groups[member]] = np.nonzero(member)[0]
    corners = points[tets]
    weight = np.bincount(of_group, minlength=len(groups))
    centers = corners.mean(axis=1)
    middle = np.stack([np.bincount(of_group, centers[:, k], len(groups)) / weight for k in range(3)], axis=1)
    separated = middle[of_group][:, None] + GROUP_SCALE * (corners - middle[of_group][:, None])
    scene = supple.Scene()
    material = supple.NeoHookean(young=1.0, poisson=0.3)
    scene.add_solid(
        supple.TetMesh(separated.reshape(-1, 3), np.arange(4 * len(tets)).reshape(-1, 4)), material
    )
    of_vertex = np.repeat(colors[of_group], 4).astype(float)
    field = replace(
        FIELDS["ordering"], label="color", values=lambda model, positions, step: of_vertex, names=None
    )
    measurements.picture(
        scene, f"{caption}: {int(colors.max()) + 1} in all, some of them alike", field=field, size=(420, 360)
    )
