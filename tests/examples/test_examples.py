"""Every script in examples/ runs at a small size with the expected result."""

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import trimesh

import supple

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def twist_equilibrium(folder: Path) -> None:
    result = example("twist_equilibrium").main(cells=5)
    assert result.report.outcome is supple.Outcome.CONVERGED
    assert result.positions[:, 0].max() == pytest.approx(1.3)


def hanging_blocks(folder: Path) -> None:
    result, lowest = example("hanging_blocks").main(cells=4)
    assert result.report.ok
    assert 0 < lowest < 0.2  # the gap of 0.2 m is closed; the weight stretches both blocks down again


def falling_bar(folder: Path) -> None:
    heights = example("falling_bar").main(cells=(8, 2, 2), frames=12)
    assert np.all(np.diff(heights) < 0)


def dataset(folder: Path) -> None:
    path = example("dataset").main(cells=3, samples=4, path=folder / "equilibria.npz")
    stored = np.load(path)
    assert stored["positions"].shape == (4, 64, 3)
    angle, ends = stored["angles"], stored["positions"][:, -1, 1:] - 0.5
    turned = np.arctan2(ends[:, 1], ends[:, 0])  # the last vertex rests at (1, 1, 1)
    np.testing.assert_allclose(turned, np.pi / 4 + angle, atol=1e-6)


def custom_motion(folder: Path) -> None:
    result = example("custom_motion").main(cells=(8, 2, 2), frames=4)
    assert all(frame.report.ok for frame in result)
    assert result[0].positions[-1, 1] == pytest.approx(1.5)  # a quarter of a second: the top of the wave
    assert result[0].report.energy > 100 * abs(result[3].report.energy)


def mesh_file(folder: Path) -> None:
    supple.meshes.save_mesh(supple.ball(radius=0.1, resolution=3), folder / "ball.vtu")
    result = example("mesh_file").main(folder / "ball.vtu", folder / "deformed.vtu", young=2e4)
    assert result.report.ok
    deformed = supple.load_mesh(folder / "deformed.vtu")
    np.testing.assert_allclose(deformed.points, result.positions)
    assert deformed.points[:, 1].max() < 0.0999


def robot_loop(folder: Path) -> None:
    errors = example("robot_loop").main(cells=(8, 2, 2), steps=100, copies=2)
    assert np.abs(errors).max() < 0.01  # goals that are 0.2 m apart


def sticky_blocks(folder: Path) -> None:
    counts = example("sticky_blocks").main(cells=2, steps=30)
    assert counts[0] == counts[-1] == 0  # they come when the blocks touch, and tear
    assert max(counts) > 4


def render_surface(folder: Path) -> None:
    pytest.importorskip("pytetwild")
    pytest.importorskip("pxr")
    module = example("render_surface")
    source = module.bumpy_ball(folder / "ball.obj")
    written = module.main(source, folder, edge_length=0.06, frames=3)
    assert written["usd"].stat().st_size > 100_000
    final = trimesh.load(written["glb"], process=False)
    assert len(final.geometry["ball"].faces) == 8_000
    assert final.bounds[0, 1] < -0.105  # it hangs lower than it was made


def fit_rubber(folder):
    """Ogden's moduli are recovered from stresses computed with them [MPa]."""
    fits = example("fit_rubber").main(folder)
    assert fits["Ogden"].mu1 == pytest.approx(0.63, rel=0.15)
    assert fits["Ogden"].mu2 == pytest.approx(0.0012, rel=0.3)
    assert fits["Gent"].limit == pytest.approx(97, rel=0.1)
    assert (folder / "rubber.png").stat().st_size > 10_000


def estimate_moduli(folder):
    module = example("estimate_moduli")
    moduli = module.main(cells=(8, 1, 1), noise=0.0, folder=folder)
    np.testing.assert_allclose(moduli, module.TRUE, rtol=1e-3)
    assert (folder / "moduli.png").stat().st_size > 10_000


def reach_pose(folder):
    assert example("reach_pose").main(cells=(6, 2, 1), folder=folder) < 2e-3
    assert (folder / "pose.png").stat().st_size > 10_000


def rest_shape(folder):
    assert example("rest_shape").main(cells=(6, 1, 1), folder=folder) < 1e-3
    assert (folder / "rest_shape.png").stat().st_size > 10_000


def train_surrogate(folder):
    """Without PyTorch, only the data are generated."""
    module = example("train_surrogate")
    if importlib.util.find_spec("torch") is None:
        data = module.make(folder, samples=8, cells=3)
        print(data)
        assert len(data.ids) == 8
        return
    error = module.main(folder, samples=96, cells=3, epochs=60)
    assert error < 0.3
    assert (folder / "predicted.png").stat().st_size > 10_000


CHECKS = (
    twist_equilibrium,
    hanging_blocks,
    falling_bar,
    dataset,
    custom_motion,
    mesh_file,
    robot_loop,
    sticky_blocks,
    render_surface,
    fit_rubber,
    estimate_moduli,
    reach_pose,
    rest_shape,
    train_surrogate,
)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_example(check, tmp_path, capsys):
    check(tmp_path)
    assert capsys.readouterr().out


def test_every_example_has_a_check():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {check.__name__ for check in CHECKS}
