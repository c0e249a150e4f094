"""Preset materials: published parameters by name, with density and source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from supple.materials.holzapfel import HolzapfelGasserOgden
from supple.materials.material import Material
from supple.materials.moduli import resolve_moduli
from supple.materials.muscle import Muscle
from supple.materials.neo_hookean import NeoHookean
from supple.materials.ogden import Ogden
from supple.materials.transverse_stvk import TransverseStVK
from supple.support.arguments import format_value, match_name, suggest_name

PSI = 6894.757
"""Pascals per pound-force per square inch [Pa]."""


@dataclass(frozen=True)
class Published:
    """Published parameters of a material.

    Attributes:
        kind: Material class.
        parameters: Parameters in SI units.
        density: Density [kg/m³].
        source: Publication or datasheet.
        note: Assumptions not covered by the source, "" for none.
    """

    kind: type[Material]
    parameters: dict[str, Any]
    density: float
    source: str
    note: str = ""

    def material(self, **changes: Any) -> Material:
        """Build the material, with changed parameters."""
        return self.kind(**(self.parameters | resolve_moduli(self.kind, changes)))


@dataclass(frozen=True)
class Preset:
    """A material with published parameters, density and source, from `preset`.

    `Scene.add_solid`, `Scene.add_cloth`, `Region` and `prestrained` accept it as a material. Solids and
    regions of solids have its density unless another one is given.

    Attributes:
        name: Name of the preset.
        material: Material.
        density: Mass density [kg/m³].
        source: Publication or datasheet.
        note: Assumptions not covered by the source, "" for none.
    """

    name: str
    material: Material
    density: float
    source: str
    note: str = ""


def _silicone(modulus: float, gravity: float, product: str) -> Published:
    """Neo-Hookean fit of the datasheet's stress at twice the length [psi], μ (2 - 1/4) if incompressible."""
    shear = modulus * PSI / 1.75
    return Published(
        NeoHookean,
        {"young": 2 * shear * (1 + 0.49), "poisson": 0.49},
        1000.0 * gravity,
        f"Smooth-On, technical bulletin of {product}: 100 % modulus {modulus:g} psi, specific gravity "
        f"{gravity:g}",
        "neo-Hookean through that one stress, for stretches up to about 2; Poisson's ratio 0.49 is assumed",
    )


def _gelatine(young: float, mixture: str, density: float) -> Published:
    return Published(
        NeoHookean,
        {"young": young, "poisson": 0.49},
        density,
        f"Bonavia, arXiv 2512.20502, 2025: {mixture}, by mass, in compression, at once",
        "the stiffness is taken as Young's modulus; it relaxes within minutes, see Maxwell; Poisson's ratio "
        "0.49 and density are assumed",
    )


def _artery(layer: str, c: float, k1: float, k2: float, cosine: float, sine: float) -> Published:
    return Published(
        HolzapfelGasserOgden,
        {
            "shear_modulus": c,
            "fiber_modulus": k1,
            "fiber_exponent": k2,
            "fiber": (cosine, sine, 0.0),
            "second_fiber": (cosine, -sine, 0.0),
            "bulk_modulus": 100 * c,
        },
        1060.0,
        f"Holzapfel, Gasser, Ogden, J. Elasticity 61, 2000: {layer} of a rabbit's carotid artery",
        "x is around the vessel, y along it: give fiber and second_fiber for others; bulk_modulus and "
        "density are assumed",
    )


PRESETS: dict[str, Published] = {
    "rubber_treloar": Published(
        Ogden,
        {
            "mu1": 6.3e5, "alpha1": 1.3, "mu2": 1.2e3, "alpha2": 5.0, "mu3": -1e4, "alpha3": -2.0,
            "bulk_modulus": 4.2e7,
        },
        910.0,
        "Ogden, Proc. R. Soc. London A 326, 1972: fitted to vulcanised rubber of Treloar, 1944",
        "the rubber kept its volume: bulk, 100 times the shear modulus, and density are assumed",
    ),
    "ecoflex_0010": _silicone(8, 1.04, "Ecoflex 00-10"),
    "ecoflex_0030": _silicone(10, 1.07, "Ecoflex 00-30"),
    "ecoflex_0050": _silicone(12, 1.07, "Ecoflex 00-50"),
    "dragon_skin_10": _silicone(22, 1.07, "Dragon Skin 10 Medium"),
    "dragon_skin_20": _silicone(49, 1.08, "Dragon Skin 20"),
    "dragon_skin_30": _silicone(86, 1.08, "Dragon Skin 30"),
    "artery_media": _artery("media", 3000.0, 2363.2, 0.8393, 0.8746197071, 0.4848096202),
    "artery_adventitia": _artery("adventitia", 300.0, 562.0, 0.7112, 0.4694715628, 0.8829475929),
    "muscle": Published(
        Muscle,
        {"young": 1.2e4, "poisson": 0.49, "strength": 2.25e5, "fiber": (1.0, 0.0, 0.0)},
        1060.0,
        "Engler et al., J. Cell Biology 166, 2004: relaxed muscle of mice, 12 kPa; Powell et al., J. Applied "
        "Physiology 57, 1984: 22.5 N/cm² of active muscle of guinea pigs; density: Mendez, Keys, 1960",
        "fiber is along x, and at rest: give activation; Poisson's ratio 0.49 is assumed",
    ),
    "fat": Published(
        NeoHookean,
        {"young": 2 * 752.0 * (1 + 0.49), "poisson": 0.49},
        920.0,
        "Strain-dependent shear properties of human adipose tissue in vivo, J. Mechanical Behavior of "
        "Biomedical Materials 2023: 752 Pa in shear, undeformed, by magnetic resonance elastography at 50 Hz",
        "it stiffens as it is compressed; Poisson's ratio 0.49 and density are assumed",
    ),
    "gelatine": _gelatine(4.34e3, "20 parts of water to one of gelatine, 4.34 kPa (deviation 0.64)", 1010.0),
    "gelatine_firm": _gelatine(2.77e5, "2 parts of water to one of gelatine, 277 kPa (deviation 30)", 1100.0),
    "skin": Published(
        NeoHookean,
        {"young": 6e3, "poisson": 0.49},
        1100.0,
        "Pailler-Mattei, Bec, Zahouani, Medical Engineering and Physics 30, 2008: human forearm indented in "
        "vivo, 4.5 to 8 kPa",
        "an order of magnitude: under tension skin is up to a thousand times as stiff; Poisson's ratio 0.49 "
        "and density are assumed",
    ),
    "cork": Published(
        TransverseStVK,
        {
            "young_along": 2e7,
            "young_across": 1.3e7,
            "shear_along": 2.5e6,
            "poisson_along": 0.05,
            "poisson_across": 0.375,
            "fiber": (1.0, 0.0, 0.0),
        },
        170.0,
        "Gibson, Easterling, Ashby, Proc. R. Soc. London A 377, 1981: the structure and mechanics of cork",
        "fiber is the radial direction of the tree; small strains; middles of the ranges given",
    ),
}  # fmt: skip
"""Parameters of a single source per preset; assumptions are stated in the note."""


def preset(name: str, **changes: Any) -> Preset:
    """Return a material with published parameters, its density and its source.

    Args:
        name: Name of the preset, whatever its case; `presets()` and `supple list presets` list all.
        **changes: Parameters that replace published ones, such as `fiber` or `activation`.

    Returns:
        The preset, which `add_solid` accepts as a material: `scene.add_solid(mesh, preset("ecoflex_0030"))`.

    Raises:
        ValueError: There is no such preset, or a changed parameter is invalid.

    >>> silicone = preset("ecoflex_0030")
    >>> silicone.density, silicone.material.poisson
    (1070.0, 0.49)
    """
    known = match_name(name, PRESETS) if isinstance(name, str) else None
    if known is None:
        raise ValueError(f"there is no preset {format_value(name)}; {suggest_name(str(name), PRESETS)}")
    published = PRESETS[known]
    return Preset(known, published.material(**changes), published.density, published.source, published.note)


def presets() -> dict[str, Preset]:
    """Return all presets by name.

    Returns:
        Presets by name, each with material, density and source.

    >>> presets()["cork"].source[:27]
    'Gibson, Easterling, Ashby, '
    """
    return {name: preset(name) for name in PRESETS}


def material_of(value: Any) -> Any:
    """Return the material of a preset; other values unchanged."""
    return value.material if isinstance(value, Preset) else value
