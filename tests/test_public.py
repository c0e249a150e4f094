"""Public names of `supple` in dir(), help() and star imports, and optional libraries."""

import inspect
import subprocess
import sys
from types import ModuleType

import pytest

import supple


def printed(code):
    """Output of a fresh interpreter before any use of `supple`."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize("used", ["", "supple.Scene; supple.inspect; supple.data"])
def test_dir_has_public_names_only(used):
    names = printed(f"import supple; {used}\nprint(*dir(supple))")
    public = {name for name in names if not name.startswith("__")}
    assert public - {"data", "jax", "torch"} == {
        *supple.__all__,
        *supple.NAMESPACES,
        *supple.NAMES_OUTSIDE_STAR_IMPORT,
    }
    assert "__version__" in names


@pytest.mark.parametrize(
    "name", [*supple.NAMESPACES, *(door for door in supple.OPTIONAL_SUBMODULES if hasattr(supple, door))]
)
def test_namespaces_have_documented_public_names_only(name):
    space = getattr(supple, name)
    assert space.__doc__
    assert len({*space.__all__}) == len(space.__all__)
    assert {each for each in dir(space) if not each.startswith("__")} == {*space.__all__}
    assert {"__all__", "__doc__"} <= {*dir(space)}
    constants = {each for each in space.__all__ if each.isupper() and isinstance(getattr(space, each), dict)}
    for each in {*space.__all__} - constants:
        assert getattr(space, each).__doc__, f"supple.{name}.{each} has no docstring"
        assert not isinstance(getattr(space, each), ModuleType)


@pytest.mark.parametrize("name", supple.NAMESPACES)
def test_namespaces_are_independent_of_import_order(name):
    code = f"import supple.{name} as space\nprint(*[n for n in dir(space) if not n.startswith('__')])"
    assert {*printed(code)} == {*getattr(supple, name).__all__}


def test_top_level_names_are_in_namespaces_or_few():
    everywhere = {each for name in supple.NAMESPACES for each in getattr(supple, name).__all__}
    assert len({*supple.__all__} - everywhere) < 40
    assert len(supple.__all__) < 90, "the rest is in namespaces"


SPELLED = {
    "center of a sphere": (lambda: supple.Sphere(centre=(0, 0, 0), radius=1), "center"),
    "center of a box": (lambda: supple.Box(centre=(0, 0, 0)), "center"),
    "center of a rotation": (lambda: supple.Rotate(centre=(0, 0, 0), angle=1.0), "center"),
    "fiber of a muscle": (lambda: supple.materials.Muscle.example(fibre=(1, 0, 0)), "fiber"),
    "fiber of an artery": (lambda: supple.materials.HolzapfelGasserOgden.example(fibres=(1, 0, 0)), "fiber"),
    "fiber of a preset": (lambda: supple.materials.preset("muscle", fibre=(1, 0, 0)), "fiber"),
    "center of a disc": (lambda: supple.meshes.disc(centre=(0, 0, 0)), "center"),
    "center of a sphere's surface": (lambda: supple.meshes.sphere(centre=(0, 0, 0)), "center"),
    "option of a solver": (lambda: supple.PBNG(iteration=3), "iterations"),
    "option of a contact": (lambda: supple.Contact(frictions=0.3), "friction"),
    "setting of a scene": (lambda: supple.Scene(gravty=0), "gravity"),
    "picture": (lambda: supple.render(None, "a.png", themes="dark"), "theme"),
    "limits": (lambda: supple.StopCriteria(tolerances=1e-3), "tolerance"),
}


@pytest.mark.parametrize("case", SPELLED)
def test_other_spellings_of_keywords_are_refused_with_the_known_one(case):
    call, known = SPELLED[case]
    with pytest.raises(TypeError, match=rf"did you mean '{known}'\?"):
        call()


def test_decorated_constructors_show_their_keywords():
    assert [*inspect.signature(supple.Sphere).parameters] == ["radius", "center", "hollow"]
    assert supple.meshes.disc.__name__ == "disc"


def test_star_import_hides_no_builtin_module():
    assert not {*supple.__all__} & sys.stdlib_module_names
    code = "import inspect\nfrom supple import *\nprint(inspect.isclass(Scene), inspect.__name__)"
    assert printed(code) == ["True", "inspect"]
    assert supple.inspect.__module__ == "supple.api.inspect"
    assert callable(supple.where)


ABSENT = "import sys; sys.modules['jax'] = sys.modules['torch'] = None; import supple\n"


def test_missing_libraries_have_no_attribute():
    code = "print(hasattr(supple, 'jax'), hasattr(supple, 'torch'), 'jax' in dir(supple))"
    assert printed(ABSENT + code) == ["False", "False", "False"]


@pytest.mark.parametrize(
    "line", ["supple.jax.equilibrium", "from supple import jax", "import supple.jax", "supple.jax"]
)
def test_missing_library_is_named(line):
    code = f"try:\n    {line}\nexcept (AttributeError, ImportError) as error:\n    print(error)"
    assert " ".join(printed(ABSENT + code)) == "supple.jax needs JAX: pip install jax"


def test_help_works_without_optional_libraries():
    command = "import pydoc; print(pydoc.render_doc(supple, renderer=pydoc.plaintext))"
    text = " ".join(printed(ABSENT + command))
    assert "class Scene(" in text
    assert "equilibrium(scene:" in text
