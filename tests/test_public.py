"""What `supple` offers as a module: names for dir(), help() and stars, and doors to other libraries."""

import subprocess
import sys

import pytest

import supple


def printed(code):
    """What a fresh interpreter prints in which `supple` has not been used yet."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize("used", ["", "supple.Scene; supple.inspect; supple.data"])
def test_dir_has_public_names_only(used):
    names = printed(f"import supple; {used}\nprint(*dir(supple))")
    public = {name for name in names if not name.startswith("__")}
    assert public - {"data", "jax", "torch"} == {*supple.__all__, *supple.NAMESPACES, *supple.BY_NAME}
    assert "__version__" in names


@pytest.mark.parametrize("name", supple.NAMESPACES)
def test_namespaces_are_complete_and_documented(name):
    space = getattr(supple, name)
    assert space.__doc__
    assert all(getattr(space, each) is not None for each in space.__all__)
    assert len(supple.__all__) < 90, "the rest is in namespaces"


def test_a_star_replaces_no_module_of_python():
    assert not {*supple.__all__} & sys.stdlib_module_names
    code = "import inspect\nfrom supple import *\nprint(inspect.isclass(Scene), inspect.__name__)"
    assert printed(code) == ["True", "inspect"]
    assert supple.inspect.__module__ == "supple.api.inspect"
    assert callable(supple.where)


ABSENT = "import sys; sys.modules['jax'] = sys.modules['torch'] = None; import supple\n"


def test_doors_to_libraries_that_are_absent_are_not_there():
    code = "print(hasattr(supple, 'jax'), hasattr(supple, 'torch'), 'jax' in dir(supple))"
    assert printed(ABSENT + code) == ["False", "False", "False"]


@pytest.mark.parametrize(
    "line", ["supple.jax.equilibrium", "from supple import jax", "import supple.jax", "supple.jax"]
)
def test_what_a_door_needs_is_said(line):
    code = f"try:\n    {line}\nexcept (AttributeError, ImportError) as error:\n    print(error)"
    assert " ".join(printed(ABSENT + code)) == "supple.jax needs JAX: pip install jax"


def test_help_shows_what_there_is_without_them():
    command = "import pydoc; print(pydoc.render_doc(supple, renderer=pydoc.plaintext))"
    text = " ".join(printed(ABSENT + command))
    assert "class Scene(" in text
    assert "equilibrium(scene:" in text
