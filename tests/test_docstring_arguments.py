"""Docstrings describe existing names: `Args:` parameters, `Attributes:` fields, properties and attributes."""

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import supple
from supple.materials.material import Material
from supple.materials.moduli import SPELLINGS

ROOT = Path(supple.__file__).parent
TREES = {
    path.relative_to(ROOT).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
    for path in sorted(ROOT.rglob("*.py"))
}

CLASSES: dict[str, list[ast.ClassDef]] = defaultdict(list)
"""Classes by name; a name may be used in several modules."""
for _tree in TREES.values():
    for _node in ast.walk(_tree):
        if isinstance(_node, ast.ClassDef):
            CLASSES[_node.name].append(_node)


def described(node: ast.FunctionDef | ast.ClassDef, section: str) -> list[str]:
    """Names in a section of a Google-style docstring; several may share a line."""
    match = re.search(rf"^{section}:\n((?:    .*\n?|\n)+)", ast.get_docstring(node) or "", re.M)
    lines = re.findall(r"^    (\S[^:\n]*):", match[1], re.M) if match else []
    names = [name.strip("* ") for line in lines for name in line.split(",")]
    return [name for name in names if name.isidentifier()]


def parameters(node: ast.FunctionDef) -> set[str]:
    rest = [argument for argument in (node.args.vararg, node.args.kwarg) if argument]
    return {
        argument.arg for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, *rest)
    }


def bases(node: ast.ClassDef) -> list[ast.ClassDef]:
    """The class and its base classes in supple."""
    found = [node]
    for base in node.bases:
        name = ast.unparse(base).split("[")[0].split(".")[-1]
        found += [ancestor for known in CLASSES[name] if known is not node for ancestor in bases(known)]
    return found


def members(node: ast.ClassDef) -> set[str]:
    """Fields, properties, and attributes that methods assign."""
    names = set()
    for kind in bases(node):
        for item in ast.walk(kind):
            if isinstance(item, ast.FunctionDef) and "property" in " ".join(
                map(ast.unparse, item.decorator_list)
            ):
                names.add(item.name)
            elif isinstance(item, ast.Attribute) and isinstance(item.ctx, ast.Store):
                names.add(item.attr)
        for item in kind.body:
            targets = item.targets if isinstance(item, ast.Assign) else [getattr(item, "target", None)]
            parts = [part for target in targets if target for part in ast.walk(target)]
            names |= {part.id for part in parts if isinstance(part, ast.Name)}
    return names


def constructor_parameters(module: str, node: ast.ClassDef) -> set[str]:
    """Parameters of the constructors of a class and its bases, including fields of dataclasses and tuples.

    Materials declare their parameters in a class attribute, and accept pairs of moduli instead.
    """
    names = set()
    for kind in bases(node):
        for item in kind.body:
            if isinstance(item, ast.FunctionDef) and item.name in ("__init__", "__new__"):
                names |= parameters(item)
            elif isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
                names.add(item.target.id)
    if module.startswith("materials/"):
        dotted = "supple." + module.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        value = getattr(import_module(dotted), node.name)
        if issubclass(value, Material):
            names |= {name for p in value.parameters for name in (p.name, *p.aliases)} | set(SPELLINGS)
    return names


def definitions() -> Iterator[tuple[str, ast.FunctionDef | ast.ClassDef]]:
    """Documented classes and functions with their modules."""
    for module, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node):
                yield module, node


def place(module: str, node: ast.FunctionDef | ast.ClassDef) -> str:
    return f"{module}:{node.lineno} {node.name}"


def test_definitions_are_found():
    count = Counter(type(node) for _, node in definitions())
    assert count[ast.FunctionDef] > 3000
    assert count[ast.ClassDef] > 500


def test_arguments_exist():
    wrong = {}
    for module, node in definitions():
        if names := set(described(node, "Args")):
            is_function = isinstance(node, ast.FunctionDef)
            known = parameters(node) if is_function else constructor_parameters(module, node)
            if names - known:
                wrong[place(module, node)] = names - known
    assert not wrong


def test_attributes_exist():
    wrong = {}
    for module, node in definitions():
        names = set(described(node, "Attributes"))
        missing = names - (members(node) if isinstance(node, ast.ClassDef) else set())
        if missing:
            wrong[place(module, node)] = missing
    assert not wrong


def test_entries_are_unique():
    wrong = {}
    for module, node in definitions():
        for section in ("Args", "Attributes"):
            names = Counter(described(node, section))
            if repeated := [name for name, count in names.items() if count > 1]:
                wrong[place(module, node)] = repeated
    assert not wrong
