"""How the bodies of a scene see each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from supple.model import Model
from supple.scene.checks import listed, number, shown
from supple.scene.errors import SceneError
from supple.weak_contact import with_weak_contact

if TYPE_CHECKING:
    from supple.scene.scene import Scene


Method = Literal["weak", "none"]


@dataclass(frozen=True)
class Contact:
    """Contact of bodies with each other and with themselves.

    method: "none", or "weak": constraints without friction that push apart what is nearer than the thickness
    [m] with a stiffness [N/m] each [PBNG section 4.1]. They give way: reports say how deep bodies went.
    Unless given, the thickness is 1 % of the mean edge of all surfaces, and the stiffness ten times that edge
    times the largest Young's modulus.
    """

    method: Method = "weak"
    thickness: float | None = None
    stiffness: float | None = None

    def __post_init__(self) -> None:
        if self.method not in get_args(Method):
            raise SceneError(f"contact must be {listed(get_args(Method))}, got {shown(self.method)}.")
        for name, unit in (("thickness", "m"), ("stiffness", "N/m")):
            if getattr(self, name) is not None:
                value = number(getattr(self, name), f"{name} [{unit}] of contact", above=0)
                object.__setattr__(self, name, value)


def contact_of(given: Any) -> Contact:
    """A `Contact`, or one by the name of its method."""
    return given if isinstance(given, Contact) else Contact(given)


def with_contact(scene: Scene, model: Model) -> Model:
    """The model with what the scene says of contact."""
    contact = contact_of(scene.contact)
    if contact.method == "none":
        return model
    triangles = np.concatenate([np.asarray(body.mesh.surface) + body.first for body in scene.bodies])
    flat = np.array([body.kind != "solid" for body in scene.bodies])
    _refuse_thick(scene, contact)
    options = contact.thickness, contact.stiffness
    return with_weak_contact(model, triangles, flat, _young(scene), *options)


def _young(scene: Scene) -> float:
    """The largest of all bodies [Pa]; 1 where no material has one."""
    moduli = [getattr(part.material, "young", None) for body in scene.bodies for part in body.parts]
    return max((float(np.max(young)) for young in moduli if young is not None), default=1.0)


def _refuse_thick(scene: Scene, contact: Contact) -> None:
    """A thickness larger than triangles would have neighbours push each other."""
    for body in scene.bodies:
        corners = body.points[np.asarray(body.mesh.surface)]
        edges = np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2)
        if contact.thickness is not None and contact.thickness > edges.min():
            raise SceneError(
                f"thickness [m] of contact, {contact.thickness:g}, must be smaller than the edges of "
                f"surfaces, and the shortest of {body.name!r} is {edges.min():.3g} m long."
            )
