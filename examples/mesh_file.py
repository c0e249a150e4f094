"""Read a tetrahedral mesh, let it stand on its lowest fifth under gravity, and write the deformed mesh.

python examples/mesh_file.py [MESH [DEFORMED]]: any format that meshio reads (.mesh, .msh, .vtk, .vtu, ...).
"""

import sys
from pathlib import Path

import numpy as np

import supple


def main(source: Path, target: Path, young: float = 1e5) -> supple.Result:
    mesh = supple.load_mesh(source, repair=True)
    (_, bottom, _), (_, top, _) = mesh.bounds

    scene = supple.Scene(gravity=(0, -9.81, 0))
    body = scene.add_solid(mesh, supple.StableNeoHookean(young=young, poisson=0.4), density=1000)
    scene.pin(body.where(lambda X: X[:, 1] <= bottom + 0.2 * (top - bottom)))

    result = supple.equilibrium(scene, solver=supple.Newton(), tolerance=1e-6)
    sag = np.linalg.norm(result.positions - mesh.points, axis=1).max()
    print(result.report)
    print(f"{source.name}: {len(mesh.points):,} vertices, moved by up to {sag:.3g} m")
    supple.meshes.save_mesh(supple.TetMesh(result.positions, mesh.tets), target)
    return result


if __name__ == "__main__":
    arguments = [Path(argument) for argument in sys.argv[1:]]
    if not arguments:
        supple.meshes.save_mesh(supple.ball(radius=0.1), "ball.vtu")
        arguments = [Path("ball.vtu")]
    main(arguments[0], arguments[1] if len(arguments) > 1 else arguments[0].with_name("deformed.vtu"))
