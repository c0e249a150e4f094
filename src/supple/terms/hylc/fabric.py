"""Fabric files: splines fitted to simulated yarns."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from supple.materials import Material, Parameter
from supple.support.arguments import check_path, format_value
from supple.support.input_files import InputFileError, read_text

PAIRS = ("01", "02", "12", "03", "13", "23", "04", "14", "24")
"""Pairs of strains of the two-dimensional splines, in kernel order."""

FABRIC_FOLDER_VARIABLE = "SUPPLE_DATA"
"""Environment variable with the folder of fabrics."""


class FabricError(ValueError):
    """Invalid contents of a fabric file."""


class MissingFabricError(FabricError, FileNotFoundError):
    """A fabric file does not exist."""


class FabricMembrane(Material):
    """Sheet material with the energy of a fabric times `stiffness`."""

    __slots__ = ()
    thin: ClassVar[bool] = True
    parameters = (Parameter("stiffness", "stiffness relative to the fabric file", above=0, default=1.0),)
    stiffness: Any


@dataclass(frozen=True, eq=False)
class Fabric:
    """ψ of six strains: a constant, five splines of one strain and nine of two.

    Attributes:
        name: Name.
        density: Mass per area [kg/m²].
        scale: (5,) scales of the strains: dimensionless in the plane, [1/m] for bending.
        constant: Constant part of ψ [J/m²].
        layout: (56,) four numbers per spline: its start in `table`, the numbers of knots along its first and
            last strain, and the start of its values.
        table: Knots, then value and derivatives at each.
    """

    name: str
    density: float
    scale: np.ndarray
    constant: float
    layout: np.ndarray
    table: np.ndarray

    def __repr__(self) -> str:
        return f"Fabric({self.name!r}, {self.density:.4g} kg/m²)"


def load_fabric(file: str | Path) -> Fabric:
    """Load a fabric.

    Args:
        file: Path of the file, or a name such as "basket1" in the folder $SUPPLE_DATA or its subfolder
            hylc/materials.

    Returns:
        The fabric.

    Raises:
        MissingFabricError: The file does not exist.
        FabricError: The file is invalid.
    """
    path = _fabric_path(file)
    try:
        data = json.loads(read_text(path))
    except InputFileError as mistake:
        raise FabricError(f"{path} {mistake}") from None
    except (OSError, ValueError, RecursionError) as mistake:
        raise FabricError(f"{path} cannot be read as JSON: {mistake}") from None
    try:
        return fabric_of(data, path.stem)
    except FabricError as mistake:
        raise FabricError(f"{path} is not a fabric file: {mistake}") from None


def _fabric_path(file: str | Path) -> Path:
    given = Path(os.path.expandvars(check_path(file, "the file of a fabric, or its name,")))
    if given.suffix or given.exists():
        if not given.exists():
            raise MissingFabricError(f"there is no file {given}")
        return given
    folder = os.environ.get(FABRIC_FOLDER_VARIABLE)
    candidates = [Path(folder) / sub / f"{given}.json" for sub in ("", "hylc/materials")] if folder else []
    for candidate in candidates:
        if candidate.is_file():
            return candidate
    where = f"in the folder {folder}" if folder else f"because {FABRIC_FOLDER_VARIABLE} is not set"
    raise MissingFabricError(
        f"there is no fabric {str(file)!r} {where}; give the path of its file, or set the environment "
        f"variable {FABRIC_FOLDER_VARIABLE} to the folder that contains {given}.json; HYLC's fabrics are "
        "published with Sperl et al. 2020, Homogenized Yarn-Level Cloth"
    )


def fabric_of(data: Any, name: str) -> Fabric:
    """Parse the contents of a fabric file.

    Raises:
        FabricError: The contents are invalid.
    """
    coefficients = _part(data, "coeffs", dict)
    scale = _numbers(_part(data, "strain scale", list), "strain scale", 5)
    if not (scale > 0).all():
        raise FabricError(f"strain scale must be positive, got {format_value(scale)}")
    density = float(_numbers(_part(data, "density"), "density", 1)[0])
    if density <= 0:
        raise FabricError(f"density must be positive [kg/m²], got {format_value(density)}")
    single = {str(_part(s, "k", int)): s for s in _part(coefficients, "1D", list)}
    double = {f"{_part(s, 'k0', int)}{_part(s, 'k1', int)}": s for s in _part(coefficients, "2D", list)}
    _refuse_missing("1D", single, tuple("01234"))
    _refuse_missing("2D", double, PAIRS)
    layout, table, size = [], [], 0
    for part in [_single(single[k], f"1D spline {k}") for k in "01234"] + [
        _double(double[pair], f"2D spline {pair}") for pair in PAIRS
    ]:
        knots = sum(part.counts)
        layout.append([size, part.counts[0], part.counts[-1], size + knots])
        table.append(part.numbers)
        size += len(part.numbers)
    return Fabric(
        name,
        density,
        scale,
        float(_numbers(_part(coefficients, "const"), "const", 1)[0]),
        np.array(layout, np.int64).ravel(),
        np.concatenate(table),
    )


@dataclass(frozen=True)
class _Spline:
    """Numbers of knots along each strain, and the knots with value and derivatives at each."""

    counts: tuple[int, ...]
    numbers: np.ndarray


def _single(data: dict, where: str) -> _Spline:
    _refuse_extrapolation(data, where)
    t = _knots(data, "t", where)
    p, m = (_numbers(_part(data, key, list, where), f"{key} of {where}", len(t)) for key in "pm")
    return _Spline((len(t),), np.concatenate([t, np.stack([p, m], axis=1).ravel()]))


def _double(data: dict, where: str) -> _Spline:
    _refuse_extrapolation(data, where)
    u, v = (_knots(data, key, where) for key in ("tu", "tv"))
    size = len(u) * len(v)
    given = dict(data) if "muv" in data else {**data, "muv": [0.0] * size}
    values = [
        _numbers(_part(given, key, list, where), f"{key} of {where}", size)
        for key in ("p", "mu", "mv", "muv")
    ]
    return _Spline((len(u), len(v)), np.concatenate([u, v, np.stack(values, axis=1).ravel()]))


def _knots(data: dict, key: str, where: str) -> np.ndarray:
    t = _numbers(_part(data, key, list, where), f"{key} of {where}")
    if len(t) < 2 or not (np.diff(t) > 0).all():
        raise FabricError(f"{key} of {where} must be at least two increasing knots, got {format_value(t)}")
    return t


def _refuse_extrapolation(data: dict, where: str) -> None:
    if data.get("ext", 0) != 0:
        raise FabricError(
            f"ext of {where} must be 0, which continues the spline linearly, got {data['ext']!r}"
        )


def _refuse_missing(kind: str, splines: dict, required: tuple[str, ...]) -> None:
    missing, unknown = [k for k in required if k not in splines], [k for k in splines if k not in required]
    if missing or unknown:
        raise FabricError(
            f"the {kind} splines must be those of strains {', '.join(required)}, but "
            + " and ".join(
                f"{', '.join(names)} {what}"
                for names, what in ((missing, "missing"), (unknown, "unknown"))
                if names
            )
        )


def _part(data: Any, key: str, kind: Any = object, where: str = "") -> Any:
    if not isinstance(data, dict) or key not in data:
        raise FabricError(f"{key!r}{f' of {where}' if where else ''} is missing")
    if not isinstance(data[key], kind):
        expected = {dict: "a table", list: "a list", int: "a whole number"}[kind]
        raise FabricError(f"{key!r} must be {expected}, got {format_value(data[key])}")
    return data[key]


def _numbers(values: Any, what: str, count: int | None = None) -> np.ndarray:
    try:
        numbers = np.atleast_1d(np.array(values, float))
    except (TypeError, ValueError):
        raise FabricError(f"{what} must be numbers, got {format_value(values)}") from None
    if numbers.ndim != 1 or not np.isfinite(numbers).all():
        raise FabricError(f"{what} must be finite numbers, got {format_value(values)}")
    if count is not None and len(numbers) != count:
        raise FabricError(f"{what} must have {count} numbers, got {len(numbers)}")
    return numbers
