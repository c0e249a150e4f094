"""supple inspect: sizes, orderings, worst elements and memory."""

import numpy as np
import pytest
from cli_scenes import SAG, supple, supple_json, write_scene

import supple as library
from supple.problem import Problem
from supple.solvers import SOLVERS

TWO_BODIES = """
[[solid]]
name = "upper"
mesh = { block = { cells = [3, 3, 3], origin = [0, 1.2, 0] } }
material = { corotated = { young = 1e4, poisson = 0.3 } }

[[solid]]
name = "lower"
mesh = { block = { cells = [4, 4, 4] } }
material = { neo_hookean = { young = 2e4, poisson = 0.4 } }

[[pin]]
solid = "upper"
where = { side = "y+" }

[[attach]]
solid = "lower"
where = { side = "y+" }
to = { solid = "upper" }
stiffness = 1e6
"""


def test_scene_is_described(tmp_path):
    output = supple_json("inspect", write_scene(tmp_path, TWO_BODIES))
    assert output["scene"] == {"file": str(tmp_path / "scene.toml"), "title": "scene"}
    assert (output["vertices"], output["tets"], output["components"]) == (64 + 125, 135 + 320, 2)
    assert (output["pinned"], output["weak_constraints"]) == (16, 25)
    upper, lower = output["bodies"]
    assert (upper["name"], upper["material"]) == ("upper", "corotated")
    assert upper["parameters"]["young"] == {"label": "E [Pa]", "values": [1e4, 1e4]}
    assert (lower["name"], lower["material"]) == ("lower", "neo_hookean")
    assert lower["parameters"]["poisson"] == {"label": "ν", "values": [0.4, 0.4]}
    assert lower["mass"] == pytest.approx(1000)
    qualities = [element["quality"] for element in lower["worst_elements"]]
    assert qualities == sorted(qualities)
    assert output["memory_megabytes"].keys() == SOLVERS.keys()


TOSSED = """
quasistatic = false
substeps = 4
damping = 0.01
gravity_ramp = { times = [0, 2], fractions = [0, 1] }

[[solid]]
name = "thrown"
mesh = { block = { cells = [2, 2, 2] } }
material = { corotated = { young = 1e4, poisson = 0.3 } }
velocity = [1, 2, 3]

[[force]]
force = [0, 7, 0]
"""


def test_clock_and_loads_are_described(tmp_path):
    scene = write_scene(tmp_path, TOSSED)
    output = supple_json("inspect", scene)
    assert (output["clock"]["substeps"], output["clock"]["damping"]) == (4, 0.01)
    assert output["clock"]["gravity_ramp"] == {"times": [0, 2], "fractions": [0, 1]}
    assert output["bodies"][0]["velocity"] == [1, 2, 3]
    (load,) = output["loads"]
    assert (load["body"], load["vertices"], load["ramp"]) == ("thrown", 27, None)
    np.testing.assert_allclose(load["force"], [0, 7, 0], atol=1e-12)
    text = supple("inspect", scene).stdout
    for part in ("0.01 per step", "0 at 0 s, 1 at 2 s", "1, 2, 3", "constant", "[m³]", "[m/s]"):
        assert part in text


FOLLOWED = """
quasistatic = false

[[solid]]
mesh = { block = { cells = [2, 2, 2] } }
material = { corotated = { young = 1e4, poisson = 0.3 } }

[[pin]]
where = { side = "y-" }

[[traction]]
where = { side = "y+" }
traction = 5.0
following = true

[contact]
"""


def test_follower_tractions_are_listed_as_loads(tmp_path):
    scene = write_scene(tmp_path, FOLLOWED)
    (load,) = supple_json("inspect", scene)["loads"]
    assert (load["body"], load["vertices"], load["following"]) == ("solid0", 9, True)
    np.testing.assert_allclose(load["force"], [0, 5, 0], atol=1e-12)
    assert "constant, following the surface" in supple("inspect", scene).stdout


@pytest.mark.parametrize(
    ("options", "described", "text_part"),
    [
        ('method = "weak"\nthickness = 0.01', {"thickness": 0.01, "stiffness": None}, "0.01 m"),
        (
            'method = "barrier"\nseparate_initial = true\nfriction = 0.3',
            {"separate_initial": True, "friction_pairs": 0},
            "yes",
        ),
        ('method = "grid"\nspacing = 0.25', {"spacing": 0.25, "cfl": 0.4}, "0.25 m"),
        ('method = "none"', {}, ""),
    ],
)
def test_contact_is_described(tmp_path, options, described, text_part):
    text = FOLLOWED.replace("following = true", "") + options
    scene = write_scene(tmp_path, text)
    contact = supple_json("inspect", scene)["contact"]
    assert contact["method"] in options
    assert described.items() <= contact.items()
    printed = supple("inspect", scene).stdout
    assert text_part in printed
    assert ("contact" in printed.splitlines()) == bool(described)


def test_color_counts_match_reports(tmp_path):
    scene = write_scene(tmp_path, TWO_BODIES)
    orderings = supple_json("inspect", scene, "--cluster-size", "4")["orderings"]
    solvers = [library.PBNG(), library.XPBD(), library.FPXPBD(ordering="clusters", cluster_size=4)]
    compared = library.compare(library.load_scene(scene).scene, solvers, max_iterations=1)
    weak = orderings["weak_constraint_colors"]
    assert [trial.report.colors for trial in compared.trials[:2]] == [
        orderings["vertex_colors"] + orderings["link_colors"],
        orderings["element_colors"] + weak,
    ]
    clusters = compared.trials[2].report.colors
    assert 0 < clusters - orderings["cluster_colors"] <= max(weak, 25)
    assert orderings["cluster_colors"] < orderings["element_colors"]
    assert 455 / 4 <= orderings["clusters"] < 455


def test_tables_fit_the_terminal(tmp_path):
    printed = supple("inspect", write_scene(tmp_path, SAG)).stdout
    for words in ("Sagging block", "bodies", "orderings", "worst elements", "memory [MB]", "corotated"):
        assert words in printed
    rows = [line.split() for line in printed.splitlines()]
    for row in (["vertices", "64"], ["tets", "135"], ["components", "1"], ["vertices", "(pbng)", "5"]):
        assert row in rows
    assert "…" not in printed


def test_memory_matches_the_arrays():
    scene = library.Scene()
    body = scene.add_solid(library.block(10), library.Corotated(young=1e4, poisson=0.3))
    scene.pin(body.where(lambda X: X[:, 0] <= 0))
    message = library.inspect(scene)["memory_megabytes"]
    model = library.scene.build_model(scene)
    problem = Problem(model, "float64")
    layout, states = problem.layout, problem.states
    rows = [layout.terms, layout.vertices, states.u, states.anchor, states.net]
    rows += [(elements.own, elements.rows) for elements in layout.elements]
    plain = message["pbng"]["float64"] - library.PBNG().memory(model, 8) / 1e6
    assert plain == pytest.approx(size_of(rows) / 1e6, rel=0.15)
    for name in ("xpbd", "bpxpbd", "fpxpbd", "gpbd", "pbd"):
        run = SOLVERS[name]().begin(problem)
        extra = message[name]["float64"] - plain
        assert extra == pytest.approx(size_of(run.projections) / 1e6, rel=0.15)
    assert "float32" not in message["newton"]


def size_of(values) -> int:
    """Bytes of all arrays in nested tuples and lists."""
    if isinstance(values, np.ndarray):
        return values.nbytes
    return sum(map(size_of, values)) if isinstance(values, list | tuple) else 0


def test_bad_input_is_refused(tmp_path):
    scene = write_scene(tmp_path, SAG)
    assert (
        "cluster_size must be a whole number of at least 1"
        in supple("inspect", scene, "--cluster-size", "0").stderr
    )
    missing = supple("inspect", "scen.toml")
    assert missing.exit_code == 2
    assert "did you mean 'scene.toml'?" in missing.stderr
