"""Plots and pictures that compare solvers."""

import math
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

import supple
from supple.api.compare import Trial
from supple.solve.report import History, Outcome, Report
from supple.solvers import SOLVERS
from supple.view import FIELDS, comparison_plot, shared_view
from supple.view.comparison_plot import place_labels

RANDOM = np.random.default_rng(0)


def trial(name: str, factor: float, count: int, first: float = 1e-3) -> Trial:
    """Trial of a solver whose residual falls by a factor in each iteration."""
    steps = range(count + 1)
    history = History(
        list(steps),
        [first * i for i in steps],
        [7.0 * factor**i for i in steps],
        [factor**i for i in steps],
        [0.0] * (count + 1),
    )
    report = Report(Outcome.FIXED_ITERATIONS, name, count, 0.0, 0.0, 0.0, 0.0, first * count, history=history)
    return Trial(SOLVERS[name](), name, None, report)


CASES = {
    "all": [trial(name, 0.9 - 0.02 * i, 40) for i, name in enumerate(SOLVERS)],
    "one falls far below": [trial("newton", 1e-3, 5), trial("pbng", 0.9, 40), trial("xpbd", 0.99, 40)],
    "one explodes": [trial("pbng", 0.9, 40), trial("xpbd", 10, 40)],
    "one solver": [trial("pbng", 0.9, 40)],
    "many iterations": [trial("newton", 0.1, 6, 0.1), trial("pbng", 0.999, 3000)],
    "nothing to do": [trial("pbng", 1.0, 0), trial("newton", 1.0, 0)],
    "exact": [trial("newton", 0.0, 1), trial("pbng", 0.9, 4)],
    "not finite": [trial("xpbd", math.inf, 3), trial("pbng", 0.9, 4)],
}


@pytest.mark.parametrize("against", ["iterations", "seconds"])
@pytest.mark.parametrize("case", CASES)
def test_plot_is_drawn_within_its_borders(tmp_path, case, against):
    comparison_plot(tmp_path / "plot.png", CASES[case], against, title="A title")
    image = imread(tmp_path / "plot.png")[..., :3]
    assert image.shape[:2] == (1100, 1600)
    draw_figure = (abs(image - image[0, 0]) > 0.02).any(axis=-1)
    assert 0.01 < draw_figure.mean() < 0.5
    border = np.concatenate([draw_figure[0], draw_figure[-1], draw_figure[:, 0], draw_figure[:, -1]])
    assert not border.any()


def test_failed_trials_are_omitted(tmp_path):
    refused = Trial(supple.BlockXPBD(), "block_xpbd", error="it cannot")
    for name, trials in (("with.png", [refused, *CASES["one solver"]]), ("without.png", CASES["one solver"])):
        comparison_plot(tmp_path / name, trials, "iterations")
    assert same(tmp_path / "with.png", tmp_path / "without.png")


def same(one: Path, other: Path) -> bool:
    return bool((imread(one) == imread(other)).all())


@pytest.mark.parametrize("count", [1, 2, 8, 16])
@pytest.mark.parametrize("spread", [0.0, 1.0, 30.0, 500.0])
def test_names_do_not_overlap_and_stay_near_their_curves(count, spread):
    height, limits = 20.0, (100.0, 800.0)
    desired = 400 + spread * RANDOM.normal(size=count)
    left = 500 + RANDOM.choice([0.0, 5.0, 300.0], count)
    right = left + RANDOM.uniform(40, 120, count)
    path = np.column_stack([np.linspace(0, 1000, 1000), np.full(1000, 400.0)])
    y = place_labels(desired, left, right, height, path, limits)
    assert (y >= limits[0]).all()
    assert (y <= limits[1]).all()
    for i in range(count):
        for j in range(i):
            if left[i] < right[j] and left[j] < right[i]:
                assert abs(y[i] - y[j]) >= 0.99 * height
    assert abs(y - np.clip(desired, *limits)).max() <= height * (count + 2)


def test_names_in_one_column_keep_the_order_of_their_curves():
    desired = np.array([300.0, 302.0, 301.0, 500.0])
    same_position = np.full(4, 10.0), np.full(4, 60.0)
    y = place_labels(desired, *same_position, 20.0, np.empty((0, 2)), (0.0, 1000.0))
    assert list(np.argsort(y)) == list(np.argsort(desired))
    assert y[3] == 500


def test_shared_view_contains_all_shapes():
    scene = supple.Scene(gravity=(0, 0, 0))
    scene.add_solid(supple.block(3), supple.Corotated(young=1e4, poisson=0.3))
    model = supple.scene.build_model(scene)
    shapes = [model.rest, model.rest + 1.0, 2 * model.rest]
    view = shared_view(model, shapes)
    image_points, distance = view.camera.project(np.concatenate(shapes))
    assert (distance > 0).all()
    assert abs(image_points).max() < 1
    moved = [FIELDS["displacement"].values(model, shape).max() for shape in shapes]
    assert view.limits == (0.0, pytest.approx(max(moved)))


def test_unmoved_shapes_do_not_set_the_color_limits():
    scene = supple.Scene(gravity=(0, 0, 0))
    scene.add_solid(supple.block(3), supple.Corotated(young=1e4, poisson=0.3))
    model = supple.scene.build_model(scene)
    small = 1e-3 * (model.rest - model.rest.min(axis=0))
    view = shared_view(model, [model.rest, model.rest + small])
    assert view.limits == (0, pytest.approx(np.linalg.norm(small, axis=1).max()))
    assert shared_view(model, [model.rest]).limits == (0, 1)
