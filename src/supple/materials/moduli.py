"""Pairs of elastic moduli: E and ν, μ and λ, or μ and κ give the same isotropic law at rest."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from supple.materials.parameters import Parameter, element_count, resolve_aliases
from supple.materials.volumetric import BULK
from supple.support.arguments import MAX_MAGNITUDE, format_value

if TYPE_CHECKING:
    from supple.materials.material import Material

YOUNG = Parameter("young", "Young's modulus", "Pa", "E", above=0, example=1e5, aliases=("E",))

POISSON = Parameter(
    "poisson",
    "Poisson's ratio",
    symbol="ν",
    above=-1,
    below=0.5,
    example=0.3,
    slider=(0.0, 0.4995),
    advice="for nearly incompressible bodies use for example 0.499",
    aliases=("nu",),
)

MU = Parameter("mu", "Lamé parameter", "Pa", "μ", above=0, aliases=("shear_modulus",))
LAM = Parameter("lam", "Lamé parameter", "Pa", "λ", advice="it must be greater than -2/3 μ")

MODULI = (YOUNG, POISSON, MU, LAM, BULK)
"""Elastic moduli of an isotropic law at rest."""

PAIRS = (("young", "poisson"), ("mu", "lam"), ("mu", "bulk_modulus"))
"""Accepted pairs, by the names of `MODULI`."""

SPELLINGS = {name: p for p in MODULI for name in (p.name, *p.aliases)}
"""Moduli by name and alias."""


def own_moduli(cls: type[Material]) -> dict[str, float]:
    """Parameters of a law that a pair of moduli determines.

    Returns:
        Names of its two elastic parameters. The value of the first is the ratio of that parameter to the
        shear modulus at rest, or 0 for laws of E and ν. Empty for laws that accept no pairs.
    """
    declared = {p.name for p in cls.parameters}
    if {"young", "poisson"} <= declared:
        return {"young": 0.0, "poisson": 0.0}
    if cls.shear_parameter is not None and {cls.shear_parameter[0], "bulk_modulus"} <= declared:
        return {cls.shear_parameter[0]: cls.shear_parameter[1], "bulk_modulus": 1.0}
    return {}


def split_moduli(cls: type[Material], given: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Separate a pair of moduli that are not parameters of a law.

    Args:
        cls: Law.
        given: Arguments of its constructor, by name or alias.

    Returns:
        The pair by the names of `MODULI`, empty if the law's own parameters are given; and all other
        arguments.

    Raises:
        TypeError: The moduli are not an accepted pair, or the law is not determined by a pair.
    """
    given = resolve_aliases(cls.__name__, cls.parameters, given)
    declared = {p.name for p in cls.parameters}
    if not any(name in SPELLINGS and name not in declared for name in given):
        return {}, given
    own = own_moduli(cls)
    if not own:
        if cls.shear_at_rest:
            raise TypeError(_not_determined(cls, [name for name in given if name not in declared]))
        return {}, given
    moduli = {name: value for name, value in given.items() if name in SPELLINGS or name in own}
    pair = resolve_aliases(cls.__name__, MODULI, moduli)
    if set(pair) not in map(set, PAIRS):
        raise TypeError(
            f"{cls.__name__} needs young and poisson, mu and lam, or shear_modulus and bulk_modulus; "
            f"got {' and '.join(pair)}"
        )
    return pair, {name: value for name, value in given.items() if name not in moduli}


def lame_parameters(pair: dict[str, Any]) -> tuple[Any, Any]:
    """Convert a pair of moduli to Lamé's μ and λ [Pa].

    Raises:
        ValueError: A modulus is out of bounds.
    """
    checked = {p.name: p.check(pair[p.name]) for p in MODULI if p.name in pair}
    element_count(checked.items())
    if "young" in checked:
        E, nu = checked["young"], checked["poisson"]
        return E / (2 * (1 + nu)), E * nu / ((1 + nu) * (1 - 2 * nu))
    if "bulk_modulus" in checked:
        return checked["mu"], checked["bulk_modulus"] - 2 / 3 * checked["mu"]
    mu, lam = checked["mu"], checked["lam"]
    check_lame(mu, lam)
    return mu, lam


def check_lame(mu: Any, lam: Any) -> None:
    """Check that the bulk modulus λ + 2/3 μ is positive, and λ within the limits of magnitudes."""
    if not np.all((np.asarray(lam) <= MAX_MAGNITUDE) & (3 * np.asarray(lam) > -2 * np.asarray(mu))):
        raise ValueError(
            f"Lamé parameters must satisfy mu > 0 and -2/3 mu < lam <= {MAX_MAGNITUDE:g} Pa, got "
            f"mu={format_value(mu)}, lam={format_value(lam)}"
        )


def resolve_moduli(cls: type[Material], given: dict[str, Any]) -> dict[str, Any]:
    """Replace aliases, and a pair of moduli by the law's own parameters.

    Args:
        cls: Law.
        given: Arguments of its constructor.

    Raises:
        TypeError: A parameter is given twice, or the moduli are not an accepted pair.
        ValueError: A modulus is out of bounds.
    """
    pair, others = split_moduli(cls, given)
    if not pair:
        return others
    mu, lam = lame_parameters(pair)
    own = own_moduli(cls)
    if "young" in own:
        return others | {"young": mu * (3 * lam + 2 * mu) / (lam + mu), "poisson": lam / (2 * (lam + mu))}
    (shear, ratio), *_ = own.items()
    return others | {shear: ratio * mu, "bulk_modulus": lam + 2 / 3 * mu}


def spellings(cls: type[Material]) -> list[tuple[str, ...]]:
    """Sets of arguments that determine a law: required parameters, with every alias and pair of moduli."""
    own = own_moduli(cls)
    required = [p for p in cls.parameters if p.default is None]
    ways = [[(p.name, *p.aliases) for p in required]]
    others = [(p.name, *p.aliases) for p in required if p.name not in own]
    named = {p.name: (p.name, *p.aliases) for p in MODULI}
    if own:
        ways += [[*(named[name] for name in pair), *others] for pair in PAIRS]
    sets = [names for way in ways for names in product(*way)]
    return list({frozenset(names): names for names in reversed(sets)}.values())[::-1]


def _not_determined(cls: type[Material], foreign: list[str]) -> str:
    names = ", ".join(p.name for p in cls.parameters if p.default is None)
    return (
        f"{cls.__name__} has no parameter {' or '.join(map(repr, foreign))}; its parameters are {names}, "
        f"and its shear modulus at rest is {cls.shear_at_rest}"
    )
