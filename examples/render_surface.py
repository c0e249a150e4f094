"""Fill a detailed surface with coarse tetrahedra, let it swing, and write its motion for other programs.

python examples/render_surface.py [SURFACE [FOLDER]]: a closed surface (.obj, .stl, .ply, .off). It writes USD
for Blender, Houdini or Omniverse, and animated glTF for browsers.
"""

import sys
from pathlib import Path

import numpy as np

import supple


def main(source: Path, folder: Path, edge_length: float, frames: int = 30) -> dict[str, Path]:
    surface = supple.meshes.load_surface(source)
    mesh = supple.meshes.tetrahedralize(surface, edge_length, progress=print)  # 1 2, then 2 2
    (_, low, _), (_, high, _) = mesh.bounds

    scene = supple.Scene(quasistatic=False, dt=1 / 30, frames=frames)
    material = supple.StableNeoHookean(young=2e4, poisson=0.4)
    body = scene.add_solid(mesh, material, name=source.stem, render=surface)
    scene.pin(body.where(lambda X: X[:, 1] >= high - 0.1 * (high - low)))

    outside = body.skin.distance.max()
    print(f"{surface!r} follows {mesh.n_tets:,} tetrahedra; points outside are up to {outside:.2g} m away")
    written = supple.io.save_frames(scene, supple.simulate(scene, tolerance=1e-3), "usd,glb", folder)
    print(*written.values(), sep="\n")
    return written


def bumpy_ball(path: Path) -> Path:
    """A ball of 10 cm with bumps, as an OBJ file."""
    ball = supple.ball(0.1, 20)
    bumps = 1 + 0.05 * np.sin(60 * ball.points).prod(axis=1, keepdims=True)
    surface = [f"v {x} {y} {z}" for x, y, z in bumps * ball.points]
    surface += [f"f {a} {b} {c}" for a, b, c in ball.surface + 1]
    path.write_text("\n".join(surface) + "\n")
    return path


if __name__ == "__main__":
    arguments = [Path(argument) for argument in sys.argv[1:]]
    shape = arguments[0] if arguments else bumpy_ball(Path("bumpy_ball.obj"))
    size = supple.meshes.load_surface(shape).diagonal
    main(shape, arguments[1] if len(arguments) > 1 else Path("animation"), edge_length=size / 12)
