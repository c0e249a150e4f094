"""Internals of supple that the reproduction of the papers needs beyond the public API.

None of these names is public: they can change without notice, and no other program should import them. All
other modules of `supple_papers` import public names of supple only, and these from here.

- `Problem`, `make_device`: Sweeps of a solver without the loop of `simulate`. They give the time of a sweep
  on a CPU or GPU, steps with a fixed number of sweeps and no residuals, and positions after each sweep.
- `Model`: Type of `Frame.model` and of the result of `build_model`, for annotations.
- `color_elements`, `color_groups`, `element_groups`: Orderings with other options than those that `inspect`
  counts, their times, and their pictures (BNH Fig. 4, PXPBD Fig. 6).
- `Forces`, `make_grid_model`: Elements of a background grid, whose colors are counted (PXPBD Fig. 6).
- `gauss_seidel`: One sweep over an assembled matrix, to measure its time (PBNG Table 4).
- `bytes_needed`: Memory of a solver with given options [bytes]; `inspect` has it for default options, rounded
  to 0.1 MB (BNH Table 3).
- `clamped_energy`: Stress of a material as PBD clamps it under compression (PBCM Fig. 2 and 11).
- `Surfaces`, `find_crossings`: Penetration depth of bodies in a result without contact, which has no contact
  report (PBNG Fig. 15).
- `closest_in_body`: Distance of a vertex from another deformed body (PBNG Fig. 13, PXPBD Fig. 11 and 12).
- `plot_axes`: Empty axes in the style of supple's own plots.
- `machine`, `require_device`: Names of the processor and of the GPU, stored with measurements.
- `replacing`: Atomic replacement of the files with measurements.
- `Json`, `errors`, `folder`, `handle_errors`, `interruption`, `note`, `print_json`, `say`, `stdout`: Options,
  output and exit codes of `supple papers`, which is a command of supple's command line.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from supple.api.inspect import bytes_needed as bytes_needed
    from supple.cli.console import errors as errors
    from supple.cli.console import folder as folder
    from supple.cli.console import handle_errors as handle_errors
    from supple.cli.console import interruption as interruption
    from supple.cli.console import note as note
    from supple.cli.console import print_json as print_json
    from supple.cli.console import say as say
    from supple.cli.console import stdout as stdout
    from supple.cli.shared_options import Json as Json
    from supple.collision.ccd.intersections import find_crossings as find_crossings
    from supple.collision.narrow_phase.contact_pairs import Surfaces as Surfaces
    from supple.grid.grid_model import Forces as Forces
    from supple.grid.grid_model import make_grid_model as make_grid_model
    from supple.io.machine import machine as machine
    from supple.io.replace_file import replacing as replacing
    from supple.kernels.cuda import require_device as require_device
    from supple.linear.linear_solvers import gauss_seidel as gauss_seidel
    from supple.materials.clamping import clamped_energy as clamped_energy
    from supple.meshes.proximity_queries import closest_in_body as closest_in_body
    from supple.model.model import Model as Model
    from supple.ordering.element_batches import color_elements as color_elements
    from supple.ordering.element_batches import color_groups as color_groups
    from supple.ordering.element_batches import element_groups as element_groups
    from supple.problem import Problem as Problem
    from supple.solve.batch_solve import make_device as make_device
    from supple.view.plots import plot_axes as plot_axes

MODULES = {
    "Forces": "supple.grid.grid_model",
    "Json": "supple.cli.shared_options",
    "Model": "supple.model.model",
    "Problem": "supple.problem",
    "Surfaces": "supple.collision.narrow_phase.contact_pairs",
    "bytes_needed": "supple.api.inspect",
    "clamped_energy": "supple.materials.clamping",
    "closest_in_body": "supple.meshes.proximity_queries",
    "color_elements": "supple.ordering.element_batches",
    "color_groups": "supple.ordering.element_batches",
    "element_groups": "supple.ordering.element_batches",
    "errors": "supple.cli.console",
    "find_crossings": "supple.collision.ccd.intersections",
    "folder": "supple.cli.console",
    "gauss_seidel": "supple.linear.linear_solvers",
    "handle_errors": "supple.cli.console",
    "interruption": "supple.cli.console",
    "machine": "supple.io.machine",
    "make_device": "supple.solve.batch_solve",
    "make_grid_model": "supple.grid.grid_model",
    "note": "supple.cli.console",
    "plot_axes": "supple.view.plots",
    "print_json": "supple.cli.console",
    "replacing": "supple.io.replace_file",
    "require_device": "supple.kernels.cuda",
    "say": "supple.cli.console",
    "stdout": "supple.cli.console",
}
"""Module of each name."""


def __getattr__(name: str) -> Any:
    """Import a name on first use, so that the command line's help imports no numerical library."""
    if name not in MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(MODULES[name]), name)
