"""Rest geometry: tetrahedral and triangle meshes, generators of simple shapes, mesh files."""

from supple.meshes.checks import MeshError
from supple.meshes.combine import merge, weld
from supple.meshes.fibers import fibers_between
from supple.meshes.files.load_save import load_mesh, save_mesh
from supple.meshes.files.surface_files import load_surface
from supple.meshes.generators.sheets import disc, pillow, sheet, sphere, tube
from supple.meshes.generators.solids import ball, block, torus
from supple.meshes.generators.tetrahedralize import tetrahedralize
from supple.meshes.mesh import Mesh
from supple.meshes.tetmesh import TetMesh
from supple.meshes.trimesh import TriMesh

__all__ = [
    "Mesh",
    "MeshError",
    "TetMesh",
    "TriMesh",
    "ball",
    "block",
    "disc",
    "fibers_between",
    "load_mesh",
    "load_surface",
    "merge",
    "pillow",
    "save_mesh",
    "sheet",
    "sphere",
    "tetrahedralize",
    "torus",
    "tube",
    "weld",
]
