"""Derivatives of motions in time against central differences of whole motions."""

import numpy as np
import pytest
from differences import Loss
from problems import cantilever, material

import supple

DT, FRAMES = 0.03, 5


def swinging(density=2.0, young=1e3, gravity=10.0, substeps=1):
    kind = material("stable_neo_hookean", young=young)
    scene = cantilever(kind, cells=(2, 1, 1), density=density, gravity=gravity)
    scene.quasistatic, scene.dt, scene.frames, scene.damping = False, DT, FRAMES, 0.1
    scene.substeps = substeps
    return scene


def losses(n):
    weights = [Loss(n, seed) for seed in range(FRAMES + 1)]
    return weights, lambda k, x: None if k == 2 else weights[k].gradient(x)


def total(scene, weights, **start):
    frames = supple.simulate(scene, solver="newton", tolerance=1e-12, **start)
    return sum(weights[frame.index](frame.positions) for frame in frames if frame.index != 2)


@pytest.mark.parametrize(("substeps", "checkpoints"), [(1, 2), (2, 100)])
def test_all_inputs_of_a_motion(substeps, checkpoints):
    scene = swinging(substeps=substeps)
    body = scene.bodies[0]
    X, pinned = body.points, scene.pins[0].on.indices
    rng = np.random.default_rng(0)
    v, dx, dv = rng.normal(size=(3, *X.shape))
    x = X + 0.01 * rng.normal(size=X.shape)
    x[pinned], v[pinned], dx[pinned], dv[pinned] = X[pinned], 0, 0, 0
    weights, loss = losses(len(X))
    parameters = {body: ("young", "density")}
    gradient = supple.gradients.motion_gradient(
        scene, loss, parameters=parameters, checkpoints=checkpoints, initial=x, velocities=v, tolerance=1e-12
    )
    assert len(gradient.frames) == FRAMES
    assert len(gradient.reports) == FRAMES * substeps

    def slope(h, **changes):
        ends = []
        for s in (h, -h):
            names = ("density", "young", "gravity")
            values = {"density": 2.0, "young": 1e3, "gravity": 10.0}
            given = {name: values[name] + s * changes.get(name, 0) for name in names}
            begin = {
                "initial": x + s * changes.get("x", 0 * dx),
                "velocities": v + s * changes.get("v", 0 * dv),
            }
            ends.append(total(swinging(**given, substeps=substeps), weights, **begin))
        return (ends[0] - ends[1]) / (2 * h)

    assert (gradient.initial_positions * dx).sum() == pytest.approx(slope(1e-5, x=dx), rel=1e-6)
    assert (gradient.initial_velocities * dv).sum() == pytest.approx(slope(1e-4, v=dv), rel=1e-6)
    assert -gradient.gravity[1] == pytest.approx(slope(1e-3, gravity=1.0), rel=1e-6)
    assert gradient.parameters[body, "young"] == pytest.approx(slope(0.1, young=1.0), rel=1e-6)
    assert gradient.parameters[body, "density"] == pytest.approx(slope(1e-3, density=1.0), rel=1e-6)


def test_wind_is_refused():
    scene = swinging()
    scene.add_wind((1, 0, 0))
    with pytest.raises(supple.gradients.NoGradientError, match="wind"):
        supple.gradients.motion_gradient(scene, lambda k, x: x)
