"""Plots of residual and energy histories."""

import math

import numpy as np
import pytest
from matplotlib.image import imread
from view_models import empty

from supple.solve.report import History
from supple.view import frames_plot, history_plot
from supple.view.plots import above_lowest
from supple.view.style import THEMES


def history(last: float) -> History:
    return History([0, 1, 2], [0.0, 0.1, 0.2], [3.0, 2.0, 1.0], [1.0, 0.1, last], [5.0, -1.0, -2.0])


def draw_figure(path, theme) -> float:
    image = (255 * imread(path)).round()
    assert image.shape[:2] == (400, 640)
    return 1 - empty(image, theme.background).mean()


@pytest.mark.parametrize("against", ["iterations", "seconds"])
@pytest.mark.parametrize("quantity", ["relative_residual", "energy"])
@pytest.mark.parametrize(("count", "name"), [(1, "light"), (3, "dark"), (9, "light")])
def test_history_plot(tmp_path, count, name, quantity, against):
    theme = THEMES[name]
    histories = {f"frame {i}": history(0.01 / (i + 1)) for i in range(count)}
    options = {"title": "Curves", "tolerance": 1e-3, "size": (640, 400), "theme": theme}
    history_plot(tmp_path / "r.png", histories, quantity, against, **options)
    assert 0.01 < draw_figure(tmp_path / "r.png", theme) < 0.5


@pytest.mark.parametrize("last", [0.0, math.inf, math.nan])
def test_non_positive_values_are_omitted_on_a_logarithmic_axis(tmp_path, last):
    for name, histories in (
        ("a", {"one": history(last), "two": history(0.1)}),
        ("b", {"one": history(last)}),
    ):
        history_plot(tmp_path / f"{name}.png", histories, size=(640, 400))
    for name, values in (("f", [1.0, last, 0.1]), ("g", [1.0, 0.5, 0.1])):
        frames_plot(
            tmp_path / f"{name}.png", np.array(values), "relative_residual", logarithmic=True, size=(640, 400)
        )
    ink = {name: draw_figure(tmp_path / f"{name}.png", THEMES["light"]) for name in "abfg"}
    assert all(0.01 < part < 0.5 for part in ink.values())
    assert ink["f"] < ink["g"]  # a point less


def test_energies_are_plotted_above_the_lowest():
    np.testing.assert_array_equal(above_lowest(np.array([3.0, -1.0, 0.0])), [4.0, np.nan, 1.0])
    assert np.isnan(above_lowest(np.array([np.nan, np.inf]))).all()
