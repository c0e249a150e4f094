"""Scene files with one mistake each, and the expected error messages."""

from scene_texts import PINNED, SOLID, pinned

SHEET = """
[[cloth]]
name = "sheet"
mesh = { sheet = { cells = [2, 1] } }
membrane = { plane_stress_stvk = { young = 1e4, poisson = 0.3 } }
thickness = 1e-3
density = 0.1

[[pin]]
cloth = "sheet"
where = { vertices = [0, 3] }
"""

MISTAKES = {
    "unknown key": ("grvity = [0, 0, 0]\n" + PINNED, "grvity: unknown key; did you mean 'gravity'?"),
    "wind on an equilibrium": (
        PINNED + "[[wind]]\nvelocity = [1, 0, 0]",
        "wind[0]: Wind on 'cube' is not supported in equilibria; make the scene dynamic with quasistatic "
        "= false, and",
    ),
    "grid on an equilibrium": (
        PINNED + '[contact]\nmethod = "grid"',
        'contact: method = "grid" needs a motion, quasistatic = false; use',
    ),
    "unknown deep key": (
        pinned(poisson="poison"),
        "solid[0].material.corotated.poison: unknown key; did you mean 'poisson'?",
    ),
    "unknown material": (
        pinned(corotated="rubber"),
        "solid[0].material.rubber: unknown key; known here: 'corot",
    ),
    "wrong type": (
        'gravity = "down"\n' + PINNED,
        "gravity: got 'down'; it should be a list. ",
    ),
    "wrong number": ("gravity = [0, true, 0]\n" + PINNED, "gravity[1]: got True; it should be a number"),
    "wrong count": ("gravity = [0, 1]\n" + PINNED, "gravity: got [0, 1]; it should have 3 items, but has 2"),
    "not a whole number": ("frames = 1.5\n" + PINNED, "frames: got 1.5; it should be a whole number"),
    "not a table": (
        SOLID.replace("{ block = { cells = [2, 2, 2] } }", '"block"'),
        "solid[0].mesh: got 'block'; it should be a table",
    ),
    "not finite": ("dt = nan\n" + PINNED, "dt: got nan; it should be a finite number"),
    "missing key": (
        SOLID.replace("mesh =", "# mesh ="),
        "solid[0].mesh: is missing. ",
    ),
    "single brackets": (
        PINNED.replace("[[pin]]", "[pin]"),
        "pin: got {'where': {'side': 'x-'}}; it should be a list. Write [[pin]]",
    ),
    "incompressible": (
        pinned(**{"0.3": "0.5"}),
        "solid[0].material.corotated.poisson: got 0.5; it should be less than 0.5. Poisson's ratio",
    ),
    "half of the parameters": (
        pinned(**{", poisson = 0.3": ""}),
        "solid[0].material.corotated: must have either young and poisson, or mu and lam, or shear_modulus "
        "and bulk_modulus; it has young",
    ),
    "impossible Lamé": (
        pinned(**{"young = 1e3, poisson = 0.3": "mu = 1, lam = -1"}),
        "solid[0].material: Lamé parameters must satisfy",
    ),
    "negative density": (
        SOLID + "density = -10",
        "solid[0].density: got -10; it should be greater than 0. Mass",
    ),
    "zero dt": ("dt = 0\n" + PINNED, "dt: got 0; it should be greater than 0. "),
    "two meshes": (
        pinned(**{"[2, 2, 2] }": "[2, 2, 2] }, ball = {}"}),
        "solid[0].mesh: must name exactly one of block, ball, torus, file; it names block, ball",
    ),
    "missing mesh": (
        pinned(**{"block = { cells = [2, 2, 2] }": 'file = "no.mesh"'}),
        "solid[0].mesh: There is no mesh",
    ),
    "impossible mesh": (
        pinned(**{"block = { cells = [2, 2, 2] }": "torus = { major = 1.0, minor = 2.0 }"}),
        "solid[0].mesh: minor must be smaller",
    ),
    "wrong scale": (
        pinned(**{"[2, 2, 2] }": "[2, 2, 2] }, scale = [1, 0, 1]"}),
        "solid[0].mesh.scale: must be one positive number, or three for x, y, z; got [1, 0, 1]",
    ),
    "same name": (PINNED + SOLID, "solid[1].name: There is already a body named 'cube'"),
    "entry that is no table": ("pin = [1]\n" + SOLID, "pin[0]: got 1; it should be a table"),
    "empty list of solids": ("solid = []", "solid: is missing."),
    "no solids": ("gravity = [0, 0, 0]", "solid: is missing. A scene needs at least one [[solid]]"),
    "unknown solid": (
        pinned(where='solid = "cub"\nwhere'),
        "pin[0].solid: there is no solid 'cub'; the scene has 'cube'",
    ),
    "which solid": (
        PINNED + SOLID.replace("cube", "other"),
        "pin[0].solid: is missing. Name one of 'cube', 'other'",
    ),
    "empty selection": (
        pinned(**{'side = "x-"': "sphere = { center = [5, 5, 5], radius = 1 }"}),
        "pin[0].where: The selection on body 'cube' is empty; the body spans x from 0 to 1",
    ),
    "wrong side": (pinned(**{"x-": "left"}), "pin[0].where.side: got 'left'; it should be 'x-', 'x+'"),
    "wrong vertices": (
        pinned(**{'side = "x-"': "vertices = [99]"}),
        "pin[0].where: Body 'cube' has vertices 0 to 26",
    ),
    "wrong motion": (
        PINNED + "motion = [{ rotate = { axis = [0, 0, 0], center = [0, 0, 0], angle = 1 } }]",
        "pin[0].motion[0]: axis of Rotate must not be the zero vector",
    ),
    "motion is no list": (
        PINNED + "motion = { translate = { offset = [1, 0, 0] } }",
        "pin[0].motion: got {'translate': {'offset': [1, 0, 0]}}; it should be a list. ",
    ),
    "wrong keyframes": (
        PINNED + "motion = [{ keyframes = { times = [0, 1], fractions = [0, 1] } }]",
        "pin[0].motion[0].keyframes: must have times and either offsets, or motion and fractions",
    ),
    "pinned twice": (
        PINNED + '[[pin]]\nwhere = { side = "y-" }\nmotion = [{ translate = { offset = [1, 0, 0] } }]',
        "pin[1]: 3 vertices of 'cube' are already pinned with another motion",
    ),
    "no surface": (
        PINNED + "[[traction]]\nwhere = { vertices = [13] }\ntraction = [1, 0, 0]",
        "traction[0]: No surface triangle of 'cube'",
    ),
    "two numbers of a traction": (
        PINNED + '[[traction]]\nwhere = { side = "x+" }\ntraction = [1, 2]',
        "traction[0].traction: must be one number, or three for x, y, z; got [1, 2]",
    ),
    "text for a traction": (
        PINNED + '[[traction]]\nwhere = { side = "x+" }\ntraction = "strong"',
        "traction[0].traction: must be one number, or three for x, y, z; got 'strong'",
    ),
    "viscosity of nothing": (
        PINNED.replace("[[pin]]", "[[solid.viscosity]]\nrayleigh = {}\n\n[[pin]]"),
        "solid[0].viscosity[0]: Rayleigh needs a stiffness_factor [s] or a mass_factor [1/s]",
    ),
    "negative thickness in pictures": (
        PINNED + "[view]\nthickness = -1",
        "view.thickness: got -1; it should be at least 0",
    ),
    "no camera of this name": (
        PINNED + '[view]\ncamera = "below"',
        "view.camera: must be one of corner, front, side, back, top, or azimuth and elevation such as "
        "[45, 30]; got 'below'",
    ),
    "option of another contact": (
        PINNED + '[contact]\nmethod = "weak"\nseparate_initial = true',
        "contact: separate_initial is only for the contact method \"barrier\", and the method is 'weak'",
    ),
    "thickness of a grid": (
        "quasistatic = false\n" + PINNED + '[contact]\nmethod = "grid"\nthickness = 0.1',
        'contact: thickness is only for the contact method "weak" or "barrier", and the method is \'grid\'',
    ),
    "step across cells": (
        "quasistatic = false\n" + PINNED + '[contact]\nmethod = "grid"\ncfl = 1e9',
        "contact.cfl: got 1000000000.0; it should be at most 1",
    ),
    "body in an obstacle": (
        PINNED + "[[obstacle]]\nshape = { sphere = { radius = 0.2, center = [1, 0.5, 0.5] } }",
        "obstacle: 'cube' begins inside obstacle 'obstacle0': ",
    ),
    "obstacle that falls in an equilibrium": (
        PINNED + "[[obstacle]]\nshape = { sphere = { radius = 0.2, center = [1, 3, 0.5] } }\nmass = 1",
        "obstacle: Obstacle 'obstacle0' has a mass, so it moves in time",
    ),
    "obstacle that is stretched": (
        PINNED
        + "[[obstacle]]\nshape = { sphere = { radius = 0.2, center = [1, 3, 0.5] } }\n"
        + "motion = [{ scale = { center = [0, 0, 0], factor = [2, 1, 1] } }]",
        "obstacle: The motion of obstacle 'obstacle0' must be rigid",
    ),
    "contact thicker than edges": (
        PINNED + "[contact]\nthickness = 3",
        "contact: thickness [m] of contact, 3, must be smaller than the edges",
    ),
    "friction of nobody": (
        PINNED + '[[contact.friction_pair]]\nbodies = ["cube", "ball"]\nfriction = 0.5',
        "contact.friction_pair: There is no body 'ball' for a friction pair; there are 'cube'",
    ),
    "bodies in each other": (
        "gravity = [0, 0, 0]\n"
        + SOLID
        + SOLID.replace('"cube"', '"other"').replace("[2, 2, 2]", "[2, 2, 2], origin = [0.3, 0.3, 0.3]")
        + '[contact]\nmethod = "barrier"',
        "contact: contact = 'barrier' needs a start without intersections or touching surfaces, but ",
    ),
    "pressure in an open sheet": (
        SHEET + "[[pressure]]\npressure = 10",
        "pressure: The pressure on 'sheet' needs a closed surface, or one whose edges are pinned: 4 vertices "
        "of its open edges are free, for example vertex 1. Close it, pin them, or use a [[traction]] with "
        "following = true, whose surface may be open.",
    ),
    "wrong stiffness": (
        PINNED + "[[attach]]\nstiffness = 0",
        "attach[0].stiffness: got 0; it should be greater than 0",
    ),
    "wrong target": (
        PINNED + '[[attach]]\nstiffness = 1\nto = { solid = "wall" }',
        "attach[0].to.solid: there is no solid 'wall'; the scene has 'cube'",
    ),
    "falls": (SOLID, "pin: Nothing holds 'cube' against the forces on it: it would fall forever"),
    "unknown solver": (
        PINNED + '[solver]\nmethod = "pbgn"',
        "solver.method: there is no solver 'pbgn'; did you mean 'pbng'",
    ),
    "unknown option": (
        PINNED + "[solver]\nmethod = 'pbng'\ntied_group = 1",
        "solver.tied_group: unknown key; did you mean 'tied_groups'?",
    ),
    "option of another solver": (
        PINNED + '[solver]\nacceleration = "sor"',
        'solver.acceleration: is not an option of hybrid, but of others: add method = "pbng"',
    ),
    "option of a part": (
        PINNED + '[solver]\nmethod = "pbng"\nacceleration = "sor"\nomega = 1.5',
        'solver.omega: is an option of the acceleration: write acceleration = { kind = "sor", omega = 1.5 }',
    ),
    "wrong option type": (
        PINNED + '[solver]\nmethod = "pbng"\nacceleration = { kind = "sor", omega = "big" }',
        "solver.acceleration: omega must lie between 0 and 2, got 'big'",
    ),
    "wrong option": (
        PINNED + '[solver]\nmethod = "pbng"\nacceleration = { kind = "sor", omega = 3 }',
        "solver.acceleration: omega must lie between 0 and 2, got 3",
    ),
    "unknown acceleration": (
        PINNED + '[solver]\nmethod = "pbng"\nacceleration = "cheby"',
        "solver.acceleration: acceleration must be 'none', 'sor', 'chebyshev', 'anderson', 'paper_sor' or "
        "'paper_chebyshev', got 'cheby'",
    ),
    "option of another acceleration": (
        PINNED + '[solver]\nmethod = "pbng"\nacceleration = { kind = "anderson", gamma = 1.0 }',
        "solver.acceleration: the acceleration 'anderson' has no option 'gamma'; known here: 'window'",
    ),
    "acceleration without a kind": (
        PINNED + "[solver]\nmethod = 'pbng'\nacceleration = { window = 5 }",
        "solver.acceleration: acceleration must contain its kind, as in { kind = 'anderson' }; got",
    ),
    "text for a flag": (
        PINNED + '[solver]\nmethod = "pbng"\ntied_groups = "no"',
        "solver.tied_groups: tied_groups must be True or False, got 'no'",
    ),
    "idle option of another solver": (
        PINNED + '[solver]\nmethod = "gpbd"\nomega = 1.2',
        'solver.omega: has no effect with sweep = "gauss_seidel"; it needs sweep = "jacobi"',
    ),
    "idle option of all elements": (
        PINNED + '[solver]\nmethod = "xpbd"\ncluster_size = 4',
        'solver.cluster_size: has no effect with ordering = "colors"; it needs ordering = "clusters"',
    ),
    "wrong tolerance": (
        PINNED + "[stop]\ntolerance = -1",
        "stop.tolerance: got -1; it should be greater than 0",
    ),
    "two starts": (
        PINNED + '[initial]\nscramble = { seed = 1 }\nflatten = { axis = "x" }',
        "initial: must name exactly one of scramble, flatten",
    ),
    "not TOML": ("gravity = [0, 0\n" + PINNED, "not valid TOML:"),
}
