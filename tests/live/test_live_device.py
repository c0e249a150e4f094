"""Live scenes on a fake device."""

from dataclasses import replace

import numpy as np
import pytest
from fake_device import fake_device  # noqa: F401
from live_scenes import BLOCK, SWING, scene_file
from typer.testing import CliRunner

import supple
from supple.cli import app
from supple.live.settings import file_settings
from supple.live.simulation import Simulation


def after_updates(folder, text, device, solver):
    file = scene_file(folder, text)
    settings = file_settings(file)
    live = Simulation(
        file, replace(settings, device=device, precision="float64", solvers=(solver,), sweeps=2)
    )
    live.prepare()
    live.update()
    live.grab(int(np.flatnonzero(live.model.free)[-1]), 0.0, "hand")
    live.drag([0, 0.1, 0], "hand")
    live.prepare()
    live.update()
    return live.tracks[0]


@pytest.mark.parametrize("text", [BLOCK, SWING])
@pytest.mark.parametrize("solver", [supple.PBNG(), supple.Newton()])
def test_device_updates_equal_those_of_the_cpu(tmp_path, fake_device, text, solver):  # noqa: F811
    text = text.replace("[4, 4, 4]", "[2, 2, 2]").replace("[3, 3, 3]", "[2, 2, 2]")
    on_host, on_device = (after_updates(tmp_path, text, device, solver) for device in ("cpu", "cuda"))
    assert fake_device.launched
    np.testing.assert_allclose(on_device.positions, on_host.positions, atol=1e-10)
    assert on_device.balance.relative_residual == pytest.approx(on_host.balance.relative_residual, rel=1e-6)


@pytest.mark.parametrize(("device", "sentence"), [("gpu", "device must be"), ("cuda", "use device='cpu'")])
def test_missing_device_is_refused(tmp_path, monkeypatch, device, sentence):
    monkeypatch.setattr("supple.kernels.devices.find_spec", lambda name: None)
    path = scene_file(tmp_path).path
    result = CliRunner().invoke(app, ["view", str(path), "--device", device])
    assert result.exit_code == 2
    assert sentence in " ".join(result.output.split())
