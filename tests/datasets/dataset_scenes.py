"""A small scene, its spec, and helpers of data set tests."""

from pathlib import Path

import supple
from supple.datasets.run.create import make_store
from supple.datasets.run.shard import Shards
from supple.datasets.spec.dataset_spec import load_spec
from supple.datasets.store.summary import write_summary

SCENE = """
gravity = [0, -9.8, 0]

[[solid]]
name = "bar"
mesh = { block = { cells = [2, 1, 1], size = [1, 0.5, 0.5] } }
material = { corotated = { young = 1e4, poisson = 0.3 } }
density = 100

[[pin]]
where = { side = "x-" }

[[pin]]
name = "end"
where = { side = "x+" }
motion = [
  { rotate = { axis = [1, 0, 0], center = [1, 0.25, 0.25], angle = 0.5 } },
  { translate = { offset = [0.1, 0, 0] } },
]

[[force]]
where = { side = "y+" }
force = [0, 0, 1]
"""

VARY = [
    {"path": "gravity.y", "name": "g", "range": [-12, 0]},
    {"path": "solid.bar.material.young", "name": "young", "range": [5e3, 5e4], "scale": "log"},
    {"path": "pin.end.motion.rotate.angle", "name": "angle", "range": [-1, 1]},
]


def scene_file(folder: Path, text: str = SCENE) -> str:
    path = folder / "bar.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def spec_of(folder: Path, count=12, shard=4, **changes):
    """Spec as a dictionary; the tables solve and store extend the defaults."""
    spec = {
        "scene": scene_file(folder),
        "count": count,
        "design": "random",
        "seed": 1,
        "vary": VARY,
        "store": {"shard_size": shard, "precision": "float64"} | changes.pop("store", {}),
        "solve": changes.pop("solve", {}),
    }
    return {key: value for key, value in (spec | changes).items() if value is not None}


def write_box(path: Path, top: float) -> None:
    """A surface file."""
    box = supple.block((1, 1, 1), (2, 0.1, 2))
    corners = [f"v {x - 0.5} {y + top - 0.1} {z - 0.5}" for x, y, z in box.points]
    triangles = ["f {} {} {}".format(*(row + 1)) for row in box.surface]
    path.write_text("\n".join([*corners, *triangles]))


def solved(folder: Path, name="set.zarr", **changes):
    """A finished store, solved in this process."""
    store = make_store(load_spec(spec_of(folder, **changes)), folder / name)
    shards = Shards(store)
    for shard in range(store.shards):
        shards.run(shard)
    write_summary(store)
    return store


def sample_bytes(store) -> dict[str, bytes]:
    """Bytes of every file under samples/, by name."""
    folder = store.path / "samples"
    return {str(f.relative_to(folder)): f.read_bytes() for f in sorted(folder.rglob("*")) if f.is_file()}
