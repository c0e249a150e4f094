"""Rest geometry: tetrahedral meshes, generators for simple shapes, reading and writing files."""

from supple.meshes.checks import MeshError
from supple.meshes.files import load_mesh, save_mesh
from supple.meshes.generators import ball, bar, block, torus
from supple.meshes.tetmesh import TetMesh

__all__ = ["MeshError", "TetMesh", "ball", "bar", "block", "load_mesh", "save_mesh", "torus"]
