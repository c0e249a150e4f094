"""Five equilibria of a pair of bodies, solved as a batch and one by one."""

import numpy as np

import supple
from supple.view.fields import FIELDS

MATERIAL = supple.NeoHookean(young=1e3, poisson=0.3)
STIFFER = supple.NeoHookean(young=3e3, poisson=0.4)


def hanging_pair() -> tuple[supple.Scene, supple.scene.Body, supple.scene.Body, supple.scene.VertexSet]:
    """Two attached blocks of different material classes, pinned on top."""
    scene = supple.Scene(gravity=(0, -9.8, 0))
    upper = scene.add_solid(supple.block(3, origin=(0, 1.1, 0)), MATERIAL, 10)
    lower = scene.add_solid(supple.block(2), supple.Corotated(young=1e3, poisson=0.3), 10)
    top = upper.where(lambda X: X[:, 1] >= 2.1)
    scene.pin(top)
    scene.attach(lower.where(lambda X: X[:, 1] >= 1), upper, stiffness=1e5)
    return scene, upper, lower, top


def variations(scene, upper, lower, top) -> list[supple.Variation]:
    turn = supple.Rotate(axis=(0, 1, 0), center=(0.5, 2.1, 0.5), angle=0.8)
    start = supple.scene.build_model(scene).rest + np.array([0.0, -0.05, 0.02])
    return [
        supple.Variation(),
        supple.Variation(pins={top: turn}),
        supple.Variation(pins={top: top.points + np.array([0.1, 0, 0])}, gravity=(1, -5, 0)),
        supple.Variation(forces={lower: (0, -40.0, 0), upper.where([0, 1]): (3.0, 0, 0)}),
        supple.Variation(materials={upper: STIFFER}, initial=start),
    ]


def batch_and_single_solves(solver) -> tuple[list, list]:
    """Five equilibria with separate pins, loads and materials, as a batch and one by one."""
    pair = hanging_pair()
    chosen = [*variations(*pair)[:4], supple.Variation(materials={pair[1]: STIFFER})]
    batch, single = (
        list(supple.equilibria(pair[0], chosen, solver=solver, device=device, max_iterations=13))
        for device in ("cuda", "cpu")
    )
    return batch, single


def expected_positions() -> list[np.ndarray]:
    """Positions of the five equilibria, each of a separate scene."""
    results = []
    for k in range(5):
        scene, upper, lower, top = hanging_pair()
        scene.pins.clear()
        motion = None
        if k == 1:
            motion = supple.Rotate(axis=(0, 1, 0), center=(0.5, 2.1, 0.5), angle=0.8)
        if k == 2:
            motion = supple.Translate((0.1, 0, 0))
            scene.gravity = (1, -5, 0)
        if k == 3:
            scene.add_force(lower, (0, -40.0, 0))
            scene.add_force(upper.where([0, 1]), (3.0, 0, 0))
        scene.pin(top, motion)
        if k == 4:
            object.__setattr__(upper, "material", STIFFER)
        results.append(supple.equilibrium(scene, solver=supple.Newton(), tolerance=1e-10).positions)
    return results


def check_batch(device: str, solver, precision: str = "float64", **options) -> list[supple.Result]:
    pair = hanging_pair()
    results = list(
        supple.equilibria(
            pair[0],
            variations(*pair),
            solver=solver,
            tolerance=1e-7,
            device=device,
            precision=precision,
            **options,
        )
    )
    assert [r.report.outcome for r in results] == [supple.Outcome.CONVERGED] * 5
    for result, x in zip(results, expected_positions(), strict=True):
        assert np.abs(result.positions - x).max() < 1e-4
        assert result.report.inverted == 0
        assert result.report.relative_residual <= 1e-7
        residual = FIELDS["residual"].values(result.model, result.positions, result.step)
        assert np.nanmax(residual) < 1e-2, "N, under the loads and with the materials of the variation"
        np.testing.assert_array_equal(result.model.rest + result.state.displacements, result.positions)
        assert not result.state.velocities.any()
    assert len({r.report.iterations for r in results}) > 1, "each stops by itself"
    return results
