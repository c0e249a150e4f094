"""Parameters and invariants shared by rubber-like materials, and their volumetric energy."""

from __future__ import annotations

from typing import Any

from supple.materials.parameters import Parameter

BULK = Parameter(
    "bulk_modulus",
    "bulk modulus",
    "Pa",
    "κ",
    above=0,
    example=2e5,
    slider=(1e4, 1e8),
    advice="for nearly incompressible bodies use 10 to 1000 times the shear modulus",
    aliases=("kappa",),
)


def modulus(
    name: str, meaning: str, symbol: str, example: float, signed: bool = False, **given: Any
) -> Parameter:
    """Declare a modulus [Pa]; positive unless `signed` or bounded otherwise."""
    bounds = {} if signed or "at_least" in given else {"above": 0}
    slider = None if example <= 0 else (1e-2 * example, 1e2 * example)
    return Parameter(name, meaning, "Pa", symbol, example=example, slider=slider, **{**bounds, **given})


def isochoric(I1: Any, J: Any) -> Any:
    """Ī₁ = J^(-2/3) I₁."""
    return I1 * J ** (-2.0 / 3.0)


def volumetric(bulk: Any, J: Any) -> Any:
    """κ/2 (J - 1)²."""
    return 0.5 * bulk * (J - 1.0) ** 2
