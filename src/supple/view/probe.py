"""Test for VTK rendering on this machine, in a child process: without system libraries VTK crashes."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from importlib import import_module

_ATTEMPT = """
import sys
from vtkmodules.vtkCommonCore import vtkLogger, vtkUnsignedCharArray
import vtkmodules.vtkRenderingOpenGL2
from vtkmodules.vtkRenderingCore import vtkRenderer, vtkRenderWindow
vtkLogger.SetStderrVerbosity(vtkLogger.VERBOSITY_OFF)
window, renderer, pixel = vtkRenderWindow(), vtkRenderer(), vtkUnsignedCharArray()
window.SetOffScreenRendering(True)
window.SetSize(8, 8)
window.AddRenderer(renderer)
renderer.SetBackground(1, 1, 1)
window.Render()
window.GetPixelData(4, 4, 4, 4, 0, pixel, 0)
sys.exit(pixel.GetNumberOfValues() == 0 or pixel.GetValue(0) != 255)
"""

MISSING = (
    "VTK cannot draw on this machine, so Matplotlib drew the picture. On Debian or Ubuntu, "
    "`apt-get install libegl1 libgl1-mesa-dri` (or libosmesa6) lets VTK draw without a display."
)


def vtk_problem_while_importing() -> str | None:
    """Run `vtk_problem` while VTK's dependencies are imported, which takes equally long."""
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(vtk_problem)
        with suppress(ImportError):  # missing libraries are reported by `vtk_problem`
            import_module("pyvista.plotting")
        return answer.result()


@cache
def vtk_problem() -> str | None:
    """None if VTK can draw, otherwise a sentence naming the packages to install."""
    try:
        done = subprocess.run([sys.executable, "-c", _ATTEMPT], capture_output=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return MISSING
    return None if done.returncode == 0 else MISSING
