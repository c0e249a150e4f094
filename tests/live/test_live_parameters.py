"""Controls for declared parameters of materials."""

from dataclasses import replace

import pytest
from fibers import Fibers
from live_scenes import scene_file
from test_live_controls import Gui

import supple
from supple.live.controls import MaterialFolder, ParameterControl
from supple.live.save import scene_table
from supple.live.settings import file_settings, short_parameters
from supple.live.simulation import Simulation
from supple.materials import MATERIALS


@pytest.fixture(autouse=True)
def registered():
    supple.materials.register_material("fibers", Fibers)
    yield
    del MATERIALS["fibers"]


@pytest.fixture
def file(tmp_path):
    return scene_file(tmp_path)


def test_controls_match_the_declared_parameters(file):
    gui, settings = Gui(), file_settings(file)
    folder = MaterialFolder(gui, ["block"])
    folder.show(settings)
    labels = {p.label for kind in MATERIALS.values() for p in kind.parameters}
    assert labels <= set(gui.controls)
    assert {label for label in labels if gui[label].visible} == {"E [Pa]", "ν"}
    gui["Material"].value = "fibers"
    settings = folder.read(settings)
    assert settings.materials == (Fibers.example(),)
    folder.show(settings)
    assert {label for label in labels if gui[label].visible} == {p.label for p in Fibers.parameters}
    assert folder.read(settings) is settings
    gui["fiber"].value = "0, 2 0"
    gui["α_f"].value = 0.25
    gui["μ_m [Pa]"].value = "2e3"
    settings = folder.read(settings)
    assert settings.materials == (Fibers.example(fiber=(0, 1, 0), activation=0.25, shear=2e3),)
    for wrong, sentence in (
        ("0, 1", "fiber must be 3 numbers, got '0, 1'"),
        ("0, 0, 0", "must not be zero"),
        ("up", "must be a number"),
    ):
        gui["fiber"].value = wrong
        with pytest.raises(ValueError, match=sentence):
            folder.read(settings)


def test_custom_material_is_saved_in_the_form_of_scene_files(file, tmp_path):
    simulation = Simulation(file)
    made = Fibers.example(fiber=(0, 3, 4), activation=0.25)
    simulation.change(replace(simulation.settings, materials=(made,)))
    saved = scene_table(simulation, tmp_path)["solid"][0]["material"]
    assert saved == {"fibers": {**made.given(), "fiber": [0.0, 0.6, 0.8]}}
    assert short_parameters(made) == made.given()


@pytest.mark.parametrize("name", MATERIALS)
def test_sliders_start_within_their_range(name):
    """viser refuses a slider with a value outside its range."""

    class Strict:
        def add_text(self, *given, hint):
            return given

        def add_slider(self, label, low, high, step, first, hint):
            assert low <= first <= high, label
            assert step > 0

    for parameter in MATERIALS[name].parameters:
        ParameterControl(Strict(), parameter)
