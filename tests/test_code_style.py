"""Style of the sources: sizes, types, docstrings, and words of the field."""

import ast
import re
import tomllib
from pathlib import Path

import supple
from supple.kernels.compile.disk_cache import KERNEL_PACKAGES
from supple.solvers import SOLVERS

ROOT = Path(supple.__file__).parent
PROJECT = Path(__file__).parents[1]
FILES = {path.relative_to(ROOT).as_posix(): path for path in sorted(ROOT.rglob("*.py"))}
TREES = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in FILES.items()}

MAX_FILE_LINES, MAX_CLASS_METHODS, MAX_FUNCTION_LINES = 500, 25, 60
"""Lines of a file without docstrings, methods of a class (a property with its setter is one), and lines of a
function without docstring and signature."""

MAX_ROOT_MODULES, MAX_FOLDER_MODULES = 2, 20
"""Modules of the package root, and of a folder that is no list."""

LISTS = {"materials", "terms"}
"""Folders with one material or one type of stencil per file."""

KERNEL_MARKS = {
    "device_function",
    "inline_control",
    "kernel",
    "allocating_kernel",
    "generic",
    "generic_control",
    "strict_order",
    "overload_by_type",
    "of",
    "njit",
    "intrinsic",
}
"""Decorators of functions that Numba compiles; of: an implementation of a generic one."""


def functions():
    for name, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield name, node


def test_sources_are_found():
    assert len(FILES) > 200
    assert sum(1 for _ in functions()) > 1000


def docstring_lines(tree: ast.AST) -> int:
    """Lines of docstrings and of strings below constants."""
    return sum(
        node.end_lineno - node.lineno + 1
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def test_files_are_short():
    """Documentation does not count."""
    lines = {
        name: len(path.read_text(encoding="utf-8").splitlines()) - docstring_lines(TREES[name])
        for name, path in FILES.items()
    }
    long = {name: count for name, count in lines.items() if count > MAX_FILE_LINES}
    assert not long, f"more than {MAX_FILE_LINES} lines: {long}"


def test_folders_are_small():
    """A reader sees the architecture from the folders."""
    sizes = {}
    for name in FILES:
        if not name.endswith("__init__.py"):
            folder = name.rpartition("/")[0]
            sizes[folder] = sizes.get(folder, 0) + 1
    assert sizes.pop("") < MAX_ROOT_MODULES, "the package root has __init__ and the map of public names"
    large = {
        folder: count for folder, count in sizes.items() if count > MAX_FOLDER_MODULES and folder not in LISTS
    }
    assert not large, f"more than {MAX_FOLDER_MODULES} modules: {large}"


def test_classes_have_few_methods():
    long = {}
    for name, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and "Protocol" not in map(ast.unparse, node.bases):
                methods = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
                if len(methods) > MAX_CLASS_METHODS:
                    long[f"{name}: {node.name}"] = len(methods)
    assert not long, f"more than {MAX_CLASS_METHODS} methods: {long}"


def test_functions_are_short():
    long = {}
    for name, function in functions():
        lines = function.body[-1].end_lineno - function.body[0].lineno + 1 - docstring_lines(function)
        if lines > MAX_FUNCTION_LINES:
            long[f"{name}: {function.name}"] = lines
    assert not long, f"more than {MAX_FUNCTION_LINES} lines: {long}"


def has_types(function: ast.FunctionDef) -> bool:
    arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    known = all(a.annotation is not None or a.arg in ("self", "cls") for a in arguments)
    return known and (function.returns is not None or function.name == "__init__")


def mark(decorator: ast.expr) -> str:
    """device_function of @device_function and @device_function(...), of of @psi.of(Corotated)."""
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return ast.unparse(called).rpartition(".")[2]


def test_untyped_functions_are_kernels():
    """mypy checks the other packages; `kernels` is about compilation by Numba."""
    seen = 0
    for name, tree in TREES.items():
        if not name.startswith(KERNEL_PACKAGES) or name.startswith("kernels"):
            continue
        inside = set()
        for node in ast.walk(tree):
            if not isinstance(node, ast.FunctionDef) or node in inside:
                continue
            if not has_types(node):
                marks = {mark(decorator) for decorator in node.decorator_list}
                assert marks & KERNEL_MARKS, f"{name}: {node.name} is no kernel and has no types"
                inside |= set(ast.walk(node))
                seen += 1
    assert seen > 200


def names_in(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} | {
        n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)
    }


def term_base_classes() -> set[str]:
    """Classes of terms and of their rows, and their base classes."""
    classes = [n for name in TREES if name.startswith("terms/") for n in ast.walk(TREES[name])]
    bases = {n.name: {ast.unparse(base) for base in n.bases} for n in classes if isinstance(n, ast.ClassDef)}
    term_classes = {"Term", "Elemental"} | {name for name in bases if name.endswith("Rows")}
    while new := {name for name, above in bases.items() if above & term_classes} - term_classes:
        term_classes |= new
    return term_classes


def questions(tree: ast.AST):
    """Type checks as (line, classes) of isinstance, issubclass, `type(...) is` and cases."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "issubclass"):
            yield node.lineno, names_in(node.args[1])
        elif isinstance(node, ast.Compare) and ast.unparse(node.left).startswith("type("):
            yield node.lineno, set().union(*map(names_in, node.comparators))
        elif isinstance(node, ast.MatchClass):
            yield node.lineno, names_in(node.cls)


def compiled_modules():
    """Modules with functions that Numba compiles."""
    for name, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and {"device_function", "kernel"} & set(
                map(mark, node.decorator_list)
            ):
                yield name
                break


def test_kernel_cache_key_covers_the_sources_of_all_kernels():
    """A kernel outside KERNEL_PACKAGES would be served from the cache after an edit."""
    compiled = set(compiled_modules())
    assert len(compiled) > 100
    outside = {name for name in compiled if name.split("/")[0] not in KERNEL_PACKAGES}
    assert not outside, f"kernels that the cache key does not cover: {outside}"


def test_only_kernel_packages_have_functions_without_types():
    overrides = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mypy"][
        "overrides"
    ]
    (untyped,) = (entry["module"] for entry in overrides if entry.get("disallow_untyped_defs") is False)
    assert {module.split(".")[1] for module in untyped} <= set(KERNEL_PACKAGES)


def test_no_type_checks_of_terms():
    """Terms declare their properties, see `terms.Term`."""
    term_classes, violations, seen = term_base_classes(), [], 0
    assert {"TetElasticity", "Springs", "WeakConstraints", "PenaltyContacts", "TetRows"} <= term_classes
    for name, tree in TREES.items():
        for line, classes in questions(tree):
            seen += 1
            if not name.startswith("terms/") and classes & term_classes:
                violations.append(f"{name}:{line} asks for {', '.join(sorted(classes & term_classes))}")
    assert seen > 100
    assert not violations, "; ".join(violations)


def test_no_type_checks_of_solvers():
    """Solvers declare their capabilities, see `solvers.Solver`."""
    solver_classes = {kind.__name__ for solver in SOLVERS.values() for kind in solver.__mro__} - {
        "Solver",
        "ABC",
        "object",
    }
    violations = [
        f"{name}:{line} asks for {', '.join(sorted(classes & solver_classes))}"
        for name, tree in TREES.items()
        if not name.startswith("solvers/")
        for line, classes in questions(tree)
        if classes & solver_classes
    ]
    assert {"PBNG", "Newton", "ElementOptions"} <= solver_classes
    assert not violations, "; ".join(violations)


def test_no_attribute_checks_of_terms():
    violations = [
        f"{name}:{node.lineno}"
        for name, tree in TREES.items()
        if not name.startswith("terms/")
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in ("hasattr", "getattr")
        and ast.unparse(node.args[0]) in ("term", "rows", "sheet")
    ]
    assert not violations, f"attributes of terms that need not be there: {violations}"


def test_required_methods_of_subclasses_are_abstract():
    raised = [
        f"{name}:{node.lineno}"
        for name, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Raise) and "NotImplementedError" in ast.unparse(node)
    ]
    assert not raised, f"NotImplementedError in place of an abstract method: {raised}"


def test_ruff_has_one_version():
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (pinned,) = re.findall(r"'ruff==([\d.]+)'", str(project["optional-dependencies"]["dev"]))
    hooks = (PROJECT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    assert set(re.findall(r"ruff==([\d.]+)", hooks)) == {pinned}


def docstrings():
    node_types = ast.Module | ast.ClassDef | ast.FunctionDef
    for name, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, node_types) and (text := ast.get_docstring(node)):
                yield f"{name}: {getattr(node, 'name', 'module')}", text


def test_docstrings_are_self_contained():
    texts = dict(docstrings())
    assert len(texts) > 2000
    leaning = [where for where, text in texts.items() if text.startswith(("The same", "Same as", "Ditto"))]
    assert not leaning, f"docstrings that begin with what stands elsewhere: {leaning}"


def is_number(node: ast.expr | None) -> bool:
    parts = ast.Constant | ast.BinOp | ast.UnaryOp | ast.operator | ast.unaryop
    return node is not None and all(
        isinstance(part, parts) and not isinstance(getattr(part, "value", 0), str | bool | bytes | None)
        for part in ast.walk(node)
    )


def test_numeric_constants_have_a_docstring():
    """A constant of a module is followed by a text."""
    silent, seen = [], 0
    for name, tree in TREES.items():
        for node, expression in zip(tree.body, [*tree.body[1:], None], strict=True):
            if (
                isinstance(node, ast.Assign)
                and ast.unparse(node.targets[0]).isupper()
                and is_number(node.value)
            ):
                seen += 1
                is_explained = isinstance(expression, ast.Expr) and isinstance(expression.value, ast.Constant)
                if not is_explained:
                    silent.append(f"{name}:{node.lineno} {ast.unparse(node)}")
    assert seen > 200
    assert not silent, f"constants without a word: {silent}"


def test_contributing_describes_every_folder():
    text = (PROJECT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    folders = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert len(folders) > 15
    assert not [name for name in sorted(folders) if f"`{name}/`" not in text]


NOT_METHODS = {"__init__", "base", "options", "launch"}
"""Modules that all methods share; building blocks have separate folders."""


def test_solvers_are_methods():
    methods = {solver.__module__.rpartition(".")[2] for solver in SOLVERS.values()}
    files = {path.stem for path in (ROOT / "solvers").glob("*.py")}
    assert files == methods | NOT_METHODS


def test_make_runs_every_folder_of_tests():
    (groups,) = re.findall(
        r"^GROUPS := (.*?)\n\n", (PROJECT / "Makefile").read_text(encoding="utf-8"), re.M | re.S
    )
    named = set(re.findall(r"[a-z_]+", groups))
    folders = {path.parent.name for path in (PROJECT / "tests").glob("*/test_*.py")}
    assert len(folders) > 20
    assert folders <= named
