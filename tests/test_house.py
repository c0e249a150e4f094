"""How large files, classes and functions may be, so that a reader can hold them in mind; what has types."""

import ast
import re
import tomllib
from pathlib import Path

import supple
from supple.solvers import SOLVERS

ROOT = Path(supple.__file__).parent
PROJECT = Path(__file__).parents[1]
FILES = {path.relative_to(ROOT).as_posix(): path for path in sorted(ROOT.rglob("*.py"))}
TREES = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in FILES.items()}

LINES, METHODS, STATEMENTS = 500, 20, 60
"""Lines of a file, methods of a class (a property with its setter is one), and lines of a function without
its signature, which is a table where it says what the options of a command are."""

KERNEL_ROOMS = (
    "algebra",
    "contact",
    "kernels",
    "linear",
    "materials",
    "ordering",
    "problem",
    "solvers",
    "terms",
)
"""Where pyproject.toml lets functions have no types, which are kernels."""

KERNEL_MARKS = {
    "physics",
    "passage",
    "kernel",
    "maker",
    "generic",
    "generic_passage",
    "ordered",
    "chosen_by_type",
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


def test_there_is_something_to_measure():
    assert len(FILES) > 200
    assert sum(1 for _ in functions()) > 1000


def test_files_are_short():
    lines = {name: len(path.read_text(encoding="utf-8").splitlines()) for name, path in FILES.items()}
    long = {name: count for name, count in lines.items() if count > LINES}
    assert not long, f"more than {LINES} lines: {long}"


def test_classes_have_few_methods():
    long = {}
    for name, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and "Protocol" not in map(ast.unparse, node.bases):
                methods = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
                if len(methods) > METHODS:
                    long[f"{name}: {node.name}"] = len(methods)
    assert not long, f"more than {METHODS} methods: {long}"


def test_functions_are_short():
    long = {}
    for name, function in functions():
        lines = function.body[-1].end_lineno - function.body[0].lineno + 1
        if lines > STATEMENTS:
            long[f"{name}: {function.name}"] = lines
    assert not long, f"more than {STATEMENTS} lines: {long}"


def has_types(function: ast.FunctionDef) -> bool:
    arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    known = all(a.annotation is not None or a.arg in ("self", "cls") for a in arguments)
    return known and (function.returns is not None or function.name == "__init__")


def mark(decorator: ast.expr) -> str:
    """physics of @physics and @physics(...), of of @psi.of(Corotated)."""
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return ast.unparse(called).rpartition(".")[2]


def test_what_has_no_types_is_a_kernel():
    """mypy sees to the other rooms, and `kernels` is about how Numba compiles."""
    seen = 0
    for name, tree in TREES.items():
        if not name.startswith(KERNEL_ROOMS) or name.startswith("kernels"):
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


def kinds_of_terms() -> set[str]:
    """Classes of terms and of their rows, and those that they have in common."""
    classes = [n for name in TREES if name.startswith("terms/") for n in ast.walk(TREES[name])]
    bases = {n.name: {ast.unparse(base) for base in n.bases} for n in classes if isinstance(n, ast.ClassDef)}
    found = {"Term", "Elemental"} | {name for name in bases if name.endswith("Rows")}
    while new := {name for name, above in bases.items() if above & found} - found:
        found |= new
    return found


def questions(tree: ast.AST):
    """What is asked for a class: (line, the classes) of isinstance, issubclass, `type(...) is` and cases."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "issubclass"):
            yield node.lineno, names_in(node.args[1])
        elif isinstance(node, ast.Compare) and ast.unparse(node.left).startswith("type("):
            yield node.lineno, set().union(*map(names_in, node.comparators))
        elif isinstance(node, ast.MatchClass):
            yield node.lineno, names_in(node.cls)


def test_nobody_asks_what_class_a_term_has():
    """A term says itself what others need to know of it, see `terms.Term`."""
    kinds, asked, seen = kinds_of_terms(), [], 0
    assert {"TetElasticity", "Springs", "WeakConstraints", "RubbingContacts", "TetRows"} <= kinds
    for name, tree in TREES.items():
        for line, classes in questions(tree):
            seen += 1
            if not name.startswith("terms/") and classes & kinds:
                asked.append(f"{name}:{line} asks for {', '.join(sorted(classes & kinds))}")
    assert seen > 100
    assert not asked, "; ".join(asked)


def test_nobody_asks_what_class_a_solver_has():
    """A solver says itself what it can do, see `solvers.Solver`."""
    kinds = {kind.__name__ for solver in SOLVERS.values() for kind in solver.__mro__} - {
        "Solver",
        "ABC",
        "object",
    }
    asked = [
        f"{name}:{line} asks for {', '.join(sorted(classes & kinds))}"
        for name, tree in TREES.items()
        if not name.startswith("solvers/")
        for line, classes in questions(tree)
        if classes & kinds
    ]
    assert {"PBNG", "Newton", "ElementOptions"} <= kinds
    assert not asked, "; ".join(asked)


def test_nobody_asks_whether_a_term_has_something():
    asked = [
        f"{name}:{node.lineno}"
        for name, tree in TREES.items()
        if not name.startswith("terms/")
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in ("hasattr", "getattr")
        and ast.unparse(node.args[0]) in ("term", "rows", "sheet")
    ]
    assert not asked, f"attributes of terms that need not be there: {asked}"


def test_what_subclasses_must_define_is_abstract():
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
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef
    for name, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, kinds) and (text := ast.get_docstring(node)):
                yield f"{name}: {getattr(node, 'name', 'module')}", text


def test_docstrings_stand_alone():
    found = dict(docstrings())
    assert len(found) > 2000
    leaning = [where for where, text in found.items() if text.startswith(("The same", "Same as", "Ditto"))]
    assert not leaning, f"docstrings that begin with what stands elsewhere: {leaning}"


def is_number(node: ast.expr | None) -> bool:
    parts = ast.Constant | ast.BinOp | ast.UnaryOp | ast.operator | ast.unaryop
    return node is not None and all(
        isinstance(part, parts) and not isinstance(getattr(part, "value", 0), str | bool | bytes | None)
        for part in ast.walk(node)
    )


def test_numbers_with_names_say_where_they_come_from():
    """A constant of a module is followed by a text."""
    silent, seen = [], 0
    for name, tree in TREES.items():
        for node, following in zip(tree.body, [*tree.body[1:], None], strict=True):
            if (
                isinstance(node, ast.Assign)
                and ast.unparse(node.targets[0]).isupper()
                and is_number(node.value)
            ):
                seen += 1
                told = isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant)
                if not told:
                    silent.append(f"{name}:{node.lineno} {ast.unparse(node)}")
    assert seen > 200
    assert not silent, f"constants without a word: {silent}"


FACES = ("papers", "datasets", "runs", "cli", "live", "view", "io", "scene", "gradients")
"""Rooms without kernels, where nothing is a vertex's record but what comes from there."""

OTHERS_RECORDS = {"record", "records", "LogRecord", "RecordBatch", "RecordBatchReader", "as_records"}
"""Of logging, where a method gets one, of pyarrow, and of `linear`."""


def test_words_have_one_meaning():
    """A record is that of a vertex, in kernels; what something says of itself on disk is an account; history
    is that of a solve; what a state carries on is remembered."""
    wrong = []
    for name, tree in TREES.items():
        for node in ast.walk(tree):
            word = getattr(node, "name", None) or getattr(node, "attr", None) or getattr(node, "arg", None)
            if not isinstance(word, str):
                continue
            if name.startswith(FACES) and "record" in word.lower() and word not in OTHERS_RECORDS:
                wrong.append(f"{name}: {word}")
            if (
                name.startswith(("problem/", "terms/", "state.py", "model.py", "grip.py"))
                and "histor" in word
            ):
                wrong.append(f"{name}: {word}")
    assert not wrong, f"words with a second meaning, see CONTRIBUTING: {wrong}"


def test_contributors_are_told_of_every_folder():
    told = (PROJECT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    folders = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert len(folders) > 15
    assert not [name for name in sorted(folders) if f"`{name}/`" not in told]


NO_METHODS = {"__init__", "solver", "options", "iterating"}
"""What all methods share; what some of them are made of has rooms of its own beside them."""


def test_solvers_are_methods():
    methods = {solver.__module__.rpartition(".")[2] for solver in SOLVERS.values()}
    files = {path.stem for path in (ROOT / "solvers").glob("*.py")}
    assert files == methods | NO_METHODS
