"""Plots of stress against stretch."""

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

import supple
from supple.cli import app
from supple.view.stress_stretch import stretch_plot, uniaxial_stress


def test_stress_of_a_bar_matches_the_closed_form():
    """St. Venant-Kirchhoff with free sides: P = E λ (λ² - 1)/2 for any ν."""
    stretches = np.array([0.8, 1.0, 1.3])
    stress = uniaxial_stress(supple.StVK(young=1e5, poisson=0.3), stretches)
    np.testing.assert_allclose(stress, 0.5e5 * stretches * (stretches**2 - 1), atol=1e-3)


def test_stress_beyond_the_limit_of_a_material_is_missing():
    """Ī₁ - 3 of an incompressible bar is 1 at a stretch of about 1.6."""
    stretches = np.linspace(1, 3, 21)
    stress = uniaxial_stress(supple.materials.Gent(shear_modulus=1e4, limit=1.0, bulk_modulus=1e6), stretches)
    assert np.isfinite(stress[:4]).all()
    assert np.isnan(stress[-1])


def test_plot_is_a_picture(tmp_path):
    path = tmp_path / "stress.png"
    stretch_plot(path, {"soft": supple.StVK(young=1e4, poisson=0.3)}, size=(400, 300))
    with Image.open(path) as image:
        assert image.size == (400, 300)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["list", "--plot", "a.png"], "supple list materials --plot"),
        (["list", "solvers", "--plot", "a.png"], "supple list materials --plot"),
        (["list", "presets", "--plot", "a.jpg"], "PNG file"),
    ],
)
def test_invalid_arguments_are_reported(arguments, sentence):
    outcome = CliRunner().invoke(app, arguments)
    assert outcome.exit_code == 2
    assert sentence in " ".join(outcome.output.split())
