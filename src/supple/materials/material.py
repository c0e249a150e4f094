"""What a material is: declared parameters, and an energy density of F with its derivatives."""

from __future__ import annotations

import warnings
from inspect import Signature
from operator import itemgetter
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from supple.algebra.matrix3 import add_diagonal, cofactor, contract, dot, matvec, outer, scaled
from supple.kernels import generic, name_apart
from supple.materials.parameters import (
    Parameter,
    annotated_parameters,
    element_count,
    instead_of,
    is_per_element,
)


def _by_name(material: Any) -> dict[str, Any]:
    """The stored numbers of a material."""
    return dict(zip(material._fields, material, strict=True))


class Material(tuple):
    """An energy density ψ(F). A subclass declares its `parameters`; each is one value for a whole body, or an
    array with one for each element.

    A material is a tuple of the numbers that kernels see, and kernels are specialised on its class. They are
    the parameters themselves, directions as 3-tuples and tensors as tuples of 9 or 6; a class whose kernels
    want other numbers, as Lamé's for E and ν, declares these as `stored` and says how in `store`; it has a
    property for each of its parameters.

    Parameters may also be annotations: `mu: Pa`, `Jm: float = 30`, `fibre: Direction`. Where a class has a
    method `psi`, of F, of `stretches` or of some of the invariants I1, I2 and J, all that solvers need is
    derived from it (docs/design/psi_only.md).
    """

    __slots__ = ()

    parameters: ClassVar[tuple[Parameter, ...]] = ()
    """What a user gives."""

    stored: ClassVar[tuple[Parameter, ...]] = ()
    """What kernels see, the parameters unless a class says otherwise."""

    barrier: ClassVar[bool] = False
    """True when ψ is infinite or undefined for some F, such as inverted ones."""

    quadratic: ClassVar[bool] = False
    """Whether ψ is quadratic in F, so that its second derivatives are the same everywhere."""

    clamp: ClassVar[float] = 0.1
    """The stretch down to which position-based dynamics trusts the response to compression [PBCM Fig. 2]:
    below it stress stays what it is there. Higher where the resistance has a maximum."""

    objective: ClassVar[bool] = True
    """Whether turning a body costs nothing: ψ(Q F) = ψ(F)."""

    isotropic: ClassVar[bool] = False
    """Whether ψ is the same in all directions: ψ(F Q) = ψ(F)."""

    thin: ClassVar[bool] = False
    """Whether ψ is that of sheets, whose thickness follows from the rest; solids need another material."""

    relaxed: ClassVar[bool] = True
    """Whether there is no stress at rest, F = I; muscles at work have some."""

    dissipates: ClassVar[bool] = False
    """Whether ψ is what a step loses rather than what is stored: it begins anew with every step."""

    rate_independent: ClassVar[bool] = False
    """Whether it flows within a step, whatever time that takes: ψ is then the incremental potential of the
    step, and `evolve` takes over the flow when the next step begins."""

    layout: ClassVar[str] = ""
    """How many numbers each stored parameter has: what is compiled depends on it."""

    _fields: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        annotated = {} if "parameters" in vars(cls) else annotated_parameters(cls)
        if annotated:
            cls.parameters = (*cls.parameters, *annotated.values())
            for name in annotated.keys() & vars(cls).keys():
                delattr(cls, name)
        if "parameters" in vars(cls) and "stored" not in vars(cls):
            cls.stored = cls.parameters
        cls._fields = tuple(p.name for p in cls.stored)
        cls.layout = " ".join(f"{p.name}:{p.size}" for p in cls.stored)
        for k, p in enumerate(cls.stored):
            if not hasattr(cls, p.name):
                setattr(cls, p.name, property(itemgetter(k), doc=p.description))
        arguments = sorted(cls.parameters, key=lambda p: p.default is not None)
        cls.__signature__ = Signature([p.argument for p in arguments])  # type: ignore[attr-defined]
        if "psi" in vars(cls):
            from supple.materials.deriving import derive

            derive(cls)
        name_apart(cls)

    def __new__(cls, **given: Any) -> Self:
        made = cls._kept(cls.store(**cls._checked(cls.parameters, given)))
        if cls.__module__.split(".")[0] != "supple":
            from supple.materials.checking import findings

            for sentence in findings(made):
                warnings.warn(f"{cls.__name__}: {sentence}", stacklevel=2)
        return made

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Its stored parameters."""

    @classmethod
    def store(cls, **parameters: Any) -> dict[str, Any]:
        """The stored numbers of checked parameters."""
        return parameters

    @classmethod
    def of_stored(cls, **given: Any) -> Self:
        """From the numbers that kernels see."""
        matrices = {p.name: p for p in cls.stored if p.size >= 6}
        for name in matrices.keys() & given.keys():
            if np.shape(given[name])[-1:] == (matrices[name].size,):
                given[name] = matrices[name].as_given(given[name])
        return cls._kept(cls._checked(cls.stored, given))

    @classmethod
    def example(cls, **changes: Any) -> Self:
        """With the examples of its declaration, but for some parameters."""
        return cls(**(examples_of(cls) | changes))

    @classmethod
    def on(cls, mesh: Any, **given: Any) -> Self:
        """For a mesh: where a parameter is a text, it is the mesh's field of that name; where it is a
        function, it is given the centres (m, 3) of all tetrahedra at rest."""

        def value(v: Any) -> Any:
            if isinstance(v, str):
                return mesh.field(v)
            return np.asarray(v(mesh.points[mesh.tets].mean(axis=1))) if callable(v) else v

        return cls(**{name: value(v) for name, v in given.items()})

    @classmethod
    def _checked(cls, declared: tuple[Parameter, ...], given: dict[str, Any]) -> dict[str, Any]:
        names = [p.name for p in declared]
        for name in given:
            if name not in names:
                raise TypeError(f"{cls.__name__} has no parameter {name!r}; {instead_of(cls, name, names)}")
        values = {}
        for p in declared:
            value = given.get(p.name, p.default)
            if value is None:
                raise TypeError(f"{cls.__name__} needs {p.name}: {p.description}")
            values[p.name] = p.checked(value)
        element_count(values.items())
        return values

    @classmethod
    def _kept(cls, values: dict[str, Any]) -> Self:
        element_count(values.items())
        for value in values.values():
            if is_per_element(value):
                value.setflags(write=False)
        return cls._make(values[name] for name in cls._fields)

    @classmethod
    def _make(cls, values: Any) -> Self:
        """Of stored numbers, unchecked."""
        return tuple.__new__(cls, values)

    def evolve(self, F: np.ndarray, dt: float) -> dict[str, np.ndarray]:
        """What the parameters that evolve are, (m, size) each by name, after a time dt [s] at deformation
        gradients F (m, 3, 3); those that stay as they are may be left out."""
        return {}

    def flowed(self) -> np.ndarray | None:
        """How much its elements have flowed, the equivalent plastic strain (m,); None where nothing can."""
        return None

    def given(self) -> dict[str, Any]:
        """Its parameters by name, in the form in which a user gives them."""
        return {p.name: p.as_given(getattr(self, p.name)) for p in self.parameters}

    _asdict = _by_name  # by which Numba tells named tuples from others

    def _replace(self, **changes: Any) -> Self:
        return self._make((self._asdict() | changes).values())

    def __eq__(self, other: object) -> bool:
        """Whether energy and parameters are the same: the class counts, which a tuple's equality would
        miss."""
        return type(self) is type(other) and all(map(np.array_equal, self, other))

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((type(self), *(np.asarray(parameter).tobytes() for parameter in self)))

    def __reduce__(self) -> tuple:
        return type(self)._make, (tuple(self),)

    def __repr__(self) -> str:
        given = {
            p.name: value if is_per_element(getattr(self, p.name)) or p.size < 6 else value.tolist()
            for p, value in zip(self.parameters, self.given().values(), strict=True)
        }
        values = ", ".join(f"{name}={value!r}" for name, value in given.items())
        return f"{type(self).__name__}({values})"


def examples_of(kind: type[Material]) -> dict[str, Any]:
    """The examples of a declaration."""
    return {p.name: p.example if p.default is None else p.default for p in kind.parameters}


@generic
def psi(material, F):
    """Energy density ψ(F) [J/m³]; F is a row-major 9-tuple."""


@generic
def stress(material, F):
    """First Piola-Kirchhoff stress P = ∂ψ/∂F [Pa], a 9-tuple."""


@generic
def traction(material, F, g):
    """P g: with a vertex's shape gradient g [1/m], minus the force density [N/m³] on it."""


@traction.of(Material)
def _traction(material, F, g):
    return matvec(stress(material, F), g)


@generic
def stress_differential(material, F, dF):
    """Directional derivative δP = (∂²ψ/∂F∂F) : δF [Pa], a 9-tuple."""


@generic
def bound_coefficients(material, F):
    """(a, b) [Pa] such that a I + b cof F ⊗ cof F is a positive definite approximation of ∂²ψ/∂F∂F [PBNG
    eq. 32]; materials that have them need no `hessian_bound` of their own."""


@generic
def hessian_bound(material, F, g, h):
    """The block A(g, h), a 9-tuple, of a positive definite approximation of ∂²ψ/∂F∂F [PBNG eq. 32]:
    Aᵢₖ = Σ Cᵢⱼₖₗ gⱼ hₗ for two vertices with shape gradients g and h [1/m]. For one vertex (g = h) it
    bounds the exact Hessian from above wherever F is not inverted."""


@hessian_bound.of(Material)
def _hessian_bound(material, F, g, h):
    """a (g·h) I + b (cof F g)(cof F h)ᵀ."""
    a, b = bound_coefficients(material, F)
    C = cofactor(F)
    return add_diagonal(scaled(b, outer(matvec(C, g), matvec(C, h))), a * dot(g, h))


@generic
def vertex_response(material, F, g):
    """(P g, A(g, g), `confinement`) at once, for materials with a bound of their own for one vertex."""


@generic
def shear_modulus(material):
    """About the least stiffness [Pa] of a material at rest, by which element-wise methods scale what they
    add."""


@generic
def stiffest(material, F):
    """About the largest eigenvalue of ∂²ψ/∂F∂F [Pa]: at least that at rest, and ¾ of it elsewhere."""


@stiffest.of(Material)
def _stiffest(material, F):
    """a + b |cof F|²."""
    a, b = bound_coefficients(material, F)
    C = cofactor(F)
    return a + b * contract(C, C)


@generic
def step_limit(material, F, g, step):
    """The fraction, at most 1, of a vertex's step that keeps ψ(F + step gᵀ) finite; for materials with a
    `barrier` only."""


@generic
def constraint_pair(material, F):
    """(C, D, k, C', D', k'): ψ = k/2 C² + k'/2 C'² + constant as two constraints with their derivatives
    D = ∂C/∂F and stiffnesses k [Pa], for materials that can be written so."""
