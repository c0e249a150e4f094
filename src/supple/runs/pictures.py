"""Pictures, films and plots of a run."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from supple.io.replace_file import replacing
from supple.runs.saved import SavedRun
from supple.scene import SceneFile
from supple.solve.report import History
from supple.support.progress import Progress
from supple.view import film, history_plot, picture, shared_view
from supple.view.camera import Angles, check_angles, parse_camera
from supple.view.fields import NO_LAST_STEP, field_named
from supple.view.film import SIZE as FILM_SIZE
from supple.view.film import frame_rate
from supple.view.picture import SIZE as PICTURE_SIZE
from supple.view.picture import check_size, check_thickness
from supple.view.plots import Abscissa, Quantity
from supple.view.style import theme_named

QUANTITIES: tuple[Quantity, ...] = ("relative_residual", "energy")
PLOT_ABSCISSAS: tuple[Abscissa, ...] = ("iterations", "seconds")

TURNTABLE_PICTURES = 90
"""Number of pictures in one camera orbit around a single frame."""


@dataclass(frozen=True)
class Appearance:
    """Display settings of pictures and films.

    Attributes:
        field: Field that determines the colors.
        camera: Azimuth and elevation.
        theme: "light" or "dark".
        size: Width and height in pixels; the default size if None.
        thickness: Factor on the drawn thickness of cloth.
        names: Write the names of bodies below them.
    """

    field: str
    camera: Angles
    theme: str = "light"
    size: tuple[int, int] | None = None
    thickness: float = 0.0
    names: bool = False

    @property
    def options(self) -> dict[str, Any]:
        return {
            "field": self.field, "camera": self.camera, "thickness": self.thickness, "names": self.names,
        }  # fmt: skip


def make_appearance(
    file: SceneFile,
    field: str | None = None,
    camera: str | None = None,
    theme: str = "light",
    size: tuple[int, int] | None = None,
    thickness: float | None = None,
    names: bool | None = None,
) -> Appearance:
    """Combine display settings from arguments and scene file.

    Raises:
        ValueError: An argument is invalid, or the field is not available for the scene.
    """
    chosen = file.view.field if field is None else field
    field_named(chosen)
    if chosen == "residual" and not file.scene.quasistatic and file.scene.substeps > 1:
        raise ValueError(f"field='residual' is not available for these frames: {NO_LAST_STEP}")
    theme_named(theme)
    azimuth, elevation = file.view.camera
    angles = check_angles((azimuth, elevation)) if camera is None else parse_camera(camera)
    thickness_factor = file.view.thickness if thickness is None else check_thickness(thickness, "--thickness")
    named = file.view.names if names is None else names
    return Appearance(
        chosen, angles, theme, None if size is None else check_size(size), thickness_factor, named
    )


def draw_picture(run: SavedRun, appearance: Appearance, index: int, path: Path) -> str | None:
    """Draw one frame; returns a sentence if VTK could not draw, otherwise None."""
    size = appearance.size or PICTURE_SIZE
    with replacing(path) as unfinished:
        shape = run.shapes([index])[0]
        return picture(
            unfinished,
            run.model,
            shape,
            title=run.title,
            size=size,
            theme=appearance.theme,
            **appearance.options,
        )


def draw_film(
    run: SavedRun,
    appearance: Appearance,
    indices: Sequence[int],
    paths: Sequence[Path],
    fps: float | None = None,
    turntable: bool = False,
    progress: Progress | None = None,
) -> str | None:
    """Render frames into films.

    Args:
        run: The run.
        appearance: Display settings.
        indices: Frame numbers.
        paths: Files to write, all with the same pictures.
        fps: Pictures per second; by default the frame rate of the run.
        turntable: Move the camera once around the scene.
        progress: Called as progress(done, total) before the first picture and after each.

    Returns:
        A sentence if VTK could not draw, otherwise None.
    """
    shapes = run.shapes(indices)
    size = appearance.size or FILM_SIZE
    view = shared_view(run.model, shapes, size=size, **appearance.options)
    if turntable and len(indices) == 1:
        shapes, fps = run.shapes(list(indices) * TURNTABLE_PICTURES), fps or 30.0
    with ExitStack() as stack:
        return film(
            [stack.enter_context(replacing(path)) for path in paths],
            run.model,
            shapes,
            title=run.title,
            size=size,
            theme=appearance.theme,
            turntable=turntable,
            fps=fps or frame_rate(run.manifest["scene"]["dt"]),
            view=view,
            progress=progress,
            **appearance.options,
        )


def draw_plots(manifest: dict[str, Any], folder: Path) -> dict[str, str]:
    """Plot recorded relative residuals and energies against iterations and time; returns file names."""
    histories = {f"frame {f['index']}": History(**f["history"]) for f in manifest["frames"] if f["history"]}
    names = {}
    for quantity, against in product(QUANTITIES, PLOT_ABSCISSAS) if histories else ():
        name = f"{'residual' if quantity == 'relative_residual' else quantity}_{against}.png"
        with replacing(folder / name) as path:
            history_plot(
                path,
                histories,
                quantity,
                against,
                title=manifest["scene"]["title"],
                tolerance=manifest["solver"]["tolerance"],
            )
        names[f"{quantity}_{against}"] = name
    return names
