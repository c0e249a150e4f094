"""Rest geometry: tetrahedral and triangle meshes, generators of simple shapes, mesh files."""

from supple.meshes.checks import MeshError
from supple.meshes.fibres import fibres_between
from supple.meshes.files import load_mesh, save_mesh
from supple.meshes.filling import tetrahedralise
from supple.meshes.generators import ball, bar, block, torus
from supple.meshes.mesh import Mesh
from supple.meshes.parts import merge_meshes, select_tets
from supple.meshes.sheets import disc, pillow, sheet, sphere, tube
from supple.meshes.surfaces import load_surface
from supple.meshes.tetmesh import TetMesh
from supple.meshes.trimesh import TriMesh
from supple.meshes.welding import weld

__all__ = [
    "Mesh",
    "MeshError",
    "TetMesh",
    "TriMesh",
    "ball",
    "bar",
    "block",
    "disc",
    "fibres_between",
    "load_mesh",
    "load_surface",
    "merge_meshes",
    "pillow",
    "save_mesh",
    "select_tets",
    "sheet",
    "sphere",
    "tetrahedralise",
    "torus",
    "tube",
    "weld",
]
