"""Base class of materials, and the generic functions of ψ(F), its derivatives, bounds and safe steps."""

from __future__ import annotations

import warnings
from inspect import Signature
from operator import itemgetter
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from supple.algebra.matrix3 import add_diagonal, cofactor, contract, dot, matvec, outer, scale_matrix
from supple.kernels import generic, make_name_unique
from supple.materials.moduli import SPELLINGS, own_moduli, resolve_moduli
from supple.materials.parameters import (
    Parameter,
    annotated_parameters,
    element_count,
    is_per_element,
    resolve_aliases,
    suggest_parameter,
    table_of,
)


def _by_name(material: Any) -> dict[str, Any]:
    """Return the stored kernel numbers of a material by field name."""
    return dict(zip(material._fields, material, strict=True))


class Material(tuple):
    """An energy density ψ(F). A subclass declares its `parameters`, each uniform or given per element.

    A material is a tuple of kernel numbers, and kernels are specialized on its class. By default these
    numbers are the parameters themselves: scalars, directions as 3-tuples, tensors as tuples of 9 or 6. A
    class whose kernels need other numbers, such as Lamé parameters computed from E and ν, declares them as
    `stored`, computes them in `store` and has a property for each of its parameters.

    Parameters may also be declared by annotations: `mu: Pa`, `Jm: float = 30`, `fiber: Direction`. If a class
    has a method `psi` of F, of `stretches` or of some of the invariants I1, I2 and J, all derivatives are
    generated from it (docs/design/psi_only.md).

    Args:
        **given: Parameters by name or alias. Scalars are numbers or (m,) values per element, directions (3,)
            or (m, 3), tensors (3, 3) or (m, 3, 3).

    Raises:
        TypeError: A parameter is unknown, missing or given twice.
        ValueError: A value is out of bounds, not finite or of the wrong shape.
    """

    __slots__ = ()

    parameters: ClassVar[tuple[Parameter, ...]] = ()
    """Parameters of the constructor."""

    stored: ClassVar[tuple[Parameter, ...]] = ()
    """Numbers passed to kernels; by default the parameters."""

    barrier: ClassVar[bool] = False
    """True if ψ is infinite or undefined for some F, such as inverted ones."""

    quadratic: ClassVar[bool] = False
    """True if ψ is quadratic in F, which means constant second derivatives."""

    clamp: ClassVar[float] = 0.1
    """Stretch below which position-based dynamics keeps the stress constant [PBCM Fig. 2].

    Larger for materials whose compressive stress has a maximum.
    """

    objective: ClassVar[bool] = True
    """True if ψ is invariant under rotations of the body: ψ(Q F) = ψ(F)."""

    isotropic: ClassVar[bool] = False
    """True if ψ is the same in all material directions: ψ(F Q) = ψ(F)."""

    thin: ClassVar[bool] = False
    """True for sheet materials, which eliminate the thickness; solids need another material."""

    relaxed: ClassVar[bool] = True
    """True if the stress vanishes at rest, F = I; false for active muscle."""

    dissipates: ClassVar[bool] = False
    """True if ψ is the energy dissipated in one step instead of stored energy; it is reset at every step."""

    rate_independent: ClassVar[bool] = False
    """True for rate-independent plastic flow within a step: ψ is then the incremental potential of the step,
    and `evolve` updates the plastic state at the start of the next step."""

    shear_parameter: ClassVar[tuple[str, float] | None] = None
    """The parameter that determines the shear modulus at rest, and its ratio to that modulus.

    Laws of shear and bulk modulus that declare it accept every pair of moduli.
    """

    shear_at_rest: ClassVar[str] = ""
    """Shear modulus at rest in terms of several parameters, such as "2 (c10 + c01)", for messages."""

    layout: ClassVar[str] = ""
    """Number of values of each stored parameter; part of the compilation key."""

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
            from supple.materials.autodiff.registration import derive

            derive(cls)
        make_name_unique(cls)

    def __new__(cls, **given: Any) -> Self:
        material = cls._from_values(
            cls.store(**cls._check_parameters(cls.parameters, resolve_moduli(cls, given)))
        )
        if cls.__module__.split(".")[0] != "supple":
            from supple.materials.material_checks import findings

            for sentence in findings(material):
                warnings.warn(f"{cls.__name__}: {sentence}", stacklevel=2)
        return material

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Its stored parameters."""

    @classmethod
    def store(cls, **parameters: Any) -> dict[str, Any]:
        """Convert checked parameters to stored kernel numbers.

        Args:
            **parameters: Parameters by name, as `Parameter.check` returns them.

        Returns:
            Values of `stored` by name.
        """
        return parameters

    @classmethod
    def of_stored(cls, **given: Any) -> Self:
        """Construct from stored kernel numbers instead of parameters.

        Args:
            **given: Values of `stored` by name.

        Returns:
            The material.
        """
        matrices = {p.name: p for p in cls.stored if p.size >= 6}
        for name in matrices.keys() & given.keys():
            if np.shape(given[name])[-1:] == (matrices[name].size,):
                given[name] = matrices[name].as_given(given[name])
        return cls._from_values(cls._check_parameters(cls.stored, given))

    @classmethod
    def from_parameters(cls, **given: Any) -> Self:
        """Construct from the arguments of the constructor or from stored kernel numbers, by their names.

        Args:
            **given: Parameters, their aliases or pairs of moduli; or values of `stored`.

        Returns:
            The material.
        """
        declared = {name for p in cls.parameters for name in (p.name, *p.aliases)}
        accepted = declared | (SPELLINGS.keys() if own_moduli(cls) else set())
        return cls(**given) if given.keys() <= accepted else cls.of_stored(**given)

    @classmethod
    def example(cls, **changes: Any) -> Self:
        """Construct with the example values of the declaration.

        Args:
            **changes: Parameters that replace their example values.

        Returns:
            The material.
        """
        return cls(**(examples_of(cls) | resolve_moduli(cls, changes)))

    @classmethod
    def on(cls, mesh: Any, **given: Any) -> Self:
        """Construct with parameters that vary over a mesh.

        Args:
            mesh: Tetrahedral mesh of m elements.
            **given: Parameters by name. A string is the name of a mesh field; a function receives the rest
                centers (m, 3) of all tetrahedra [m] and returns values per element.

        Returns:
            The material, with arrays (m, ...) for parameters given by strings or functions.
        """

        def value(v: Any) -> Any:
            if isinstance(v, str):
                return mesh.field(v)
            return np.asarray(v(mesh.points[mesh.tets].mean(axis=1))) if callable(v) else v

        return cls(**{name: value(v) for name, v in given.items()})

    @classmethod
    def _check_parameters(cls, declared: tuple[Parameter, ...], given: dict[str, Any]) -> dict[str, Any]:
        names = [p.name for p in declared]
        given = resolve_aliases(cls.__name__, declared, given)
        for name in given:
            if name not in names:
                raise TypeError(
                    f"{cls.__name__} has no parameter {name!r}; {suggest_parameter(cls, name, names)}"
                )
        values = {}
        for p in declared:
            value = given.get(p.name, p.default)
            if value is None:
                raise TypeError(f"{cls.__name__} needs {p.name}: {p.description}")
            values[p.name] = p.check(value)
        element_count(values.items())
        return values

    @classmethod
    def _from_values(cls, values: dict[str, Any]) -> Self:
        element_count(values.items())
        for value in values.values():
            if is_per_element(value):
                value.setflags(write=False)
        return cls._make(values[name] for name in cls._fields)

    @classmethod
    def _make(cls, values: Any) -> Self:
        """Construct from stored numbers without checks."""
        return tuple.__new__(cls, values)

    def evolve(self, F: np.ndarray, dt: float) -> dict[str, np.ndarray]:
        """Internal variables at the end of a step.

        Args:
            F: (m, 3, 3) deformation gradients.
            dt: Time step [s].

        Returns:
            Changed internal variables by name, (m,) or (m, size) each; unchanged ones may be omitted.
        """
        return {}

    def plastic_strains(self) -> np.ndarray | None:
        """Return the equivalent plastic strain of the elements.

        Returns:
            (m,) strains; None for materials without plastic flow.
        """
        return None

    def given(self) -> dict[str, Any]:
        """Return the parameters in the form of the constructor's arguments.

        Returns:
            Values by name: tensors as (3, 3) or (m, 3, 3).
        """
        return {p.name: p.as_given(getattr(self, p.name)) for p in self.parameters}

    _asdict = _by_name  # by which Numba tells named tuples from others

    def _replace(self, **changes: Any) -> Self:
        return self._make((self._asdict() | changes).values())

    def __eq__(self, other: object) -> bool:
        """Compare class and parameters; tuple equality would ignore the class."""
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
    """Return the example value, or the default, of each declared parameter."""
    return {p.name: p.example if p.default is None else p.default for p in kind.parameters}


def evolving(kind: Any) -> list[Parameter]:
    """Return the internal variables among the stored parameters of a material class."""
    return [p for p in kind.stored if p.evolves]


def by_element(material: Any, count: int) -> Any:
    """Return a material whose internal variables have one entry for each of `count` elements."""
    tables = {}
    for p in evolving(type(material)):
        table = table_of(getattr(material, p.name), count)
        tables[p.name] = table[:, 0] if p.kind == "scalar" else table
    return material._replace(**tables) if tables else material


@generic
def psi(material, F):
    """Energy density ψ(F).

    Args:
        material: Material with uniform parameters.
        F: Deformation gradient, a row-major 9-tuple.

    Returns:
        ψ [J/m³].

    Example: `supple.materials.psi(supple.Corotated(young=1e5, poisson=0.3), (1.1, 0, 0, 0, 1, 0, 0, 0, 1))`.
    """


@generic
def stress(material, F):
    """First Piola-Kirchhoff stress P = ∂ψ/∂F.

    Args:
        material: Material with uniform parameters.
        F: Deformation gradient, a row-major 9-tuple.

    Returns:
        P [Pa], a row-major 9-tuple.
    """


@generic
def traction(material, F, g):
    """P g; with a vertex's shape gradient g, minus the force density on the vertex.

    Args:
        material: Material with uniform parameters.
        F: Deformation gradient, a row-major 9-tuple.
        g: Vector, (3,); a shape gradient [1/m].

    Returns:
        P g, (3,); [N/m³] for a shape gradient.
    """


@traction.of(Material)
def _traction(material, F, g):
    return matvec(stress(material, F), g)


@generic
def stress_differential(material, F, dF):
    """Directional derivative δP = (∂²ψ/∂F∂F) : δF of the stress.

    Args:
        material: Material with uniform parameters.
        F: Deformation gradient, a row-major 9-tuple.
        dF: Change δF of the deformation gradient, a row-major 9-tuple.

    Returns:
        δP [Pa], a row-major 9-tuple.
    """


@generic
def bound_coefficients(material, F):
    """(a, b) [Pa] of the positive definite approximation a I + b cof F ⊗ cof F of ∂²ψ/∂F∂F [PBNG eq. 32].

    Materials with these coefficients need no `hessian_bound` of their own.

    Args:
        material: Material with uniform parameters.
        F: Deformation gradient, a row-major 9-tuple.

    Returns:
        a and b [Pa].
    """


@generic
def hessian_bound(material, F, g, h):
    """Block A(g, h), a 9-tuple, of a positive definite approximation of ∂²ψ/∂F∂F [PBNG eq. 32].

    Aᵢₖ = Σ Cᵢⱼₖₗ gⱼ hₗ for two vertices with shape gradients g and h [1/m]. For one vertex (g = h) it is an
    upper bound of the exact Hessian block as long as F is not inverted.

    Args:
        material: Material with uniform parameters.
        F: Deformation gradient, a row-major 9-tuple.
        g: Shape gradient of the first vertex [1/m], (3,).
        h: Shape gradient of the second vertex [1/m], (3,).

    Returns:
        A(g, h) [Pa/m²], a row-major 9-tuple.
    """


@hessian_bound.of(Material)
def _hessian_bound(material, F, g, h):
    """a (g·h) I + b (cof F g)(cof F h)ᵀ."""
    a, b = bound_coefficients(material, F)
    C = cofactor(F)
    return add_diagonal(scale_matrix(b, outer(matvec(C, g), matvec(C, h))), a * dot(g, h))


@generic
def vertex_response(material, F, g):
    """Response to one vertex in one call, for materials with a dedicated bound for a single vertex.

    Args:
        material: Material with uniform parameters.
        F: Deformation gradient, a row-major 9-tuple.
        g: Shape gradient of the vertex [1/m], (3,).

    Returns:
        Traction P g [N/m³], block A(g, g) [Pa/m²] and `inverse_square_safe_radius` [1/m²].
    """


@generic
def shear_modulus(material):
    """Approximate smallest stiffness at rest [Pa], the scale of regularization in element-wise methods.

    Args:
        material: Material with uniform parameters.

    Returns:
        Stiffness [Pa]; μ for isotropic materials.
    """


@generic
def stiffest(material, F):
    """Approximate largest eigenvalue of ∂²ψ/∂F∂F [Pa]: at least its value at rest, and ¾ of it elsewhere."""


@stiffest.of(Material)
def _stiffest(material, F):
    """a + b |cof F|²."""
    a, b = bound_coefficients(material, F)
    C = cofactor(F)
    return a + b * contract(C, C)


@generic
def step_limit(material, F, g, step):
    """Fraction of a vertex step, at most 1, that keeps ψ(F + step gᵀ) finite.

    For materials with a `barrier` only.

    Args:
        material: Material with uniform parameters.
        F: Deformation gradient, a row-major 9-tuple.
        g: Shape gradient of the vertex [1/m], (3,).
        step: Step of the vertex [m], (3,).

    Returns:
        Largest safe fraction of the step, at most 1.
    """


@generic
def constraint_pair(material, F):
    """(C₁, ∂C₁/∂F, κ₁, C₂, ∂C₂/∂F, κ₂) of ψ = κ₁/2 C₁² + κ₂/2 C₂² + constant, two constraints.

    κ₁, κ₂ are moduli [Pa]. Only for materials that have this form.

    Args:
        material: Material with uniform parameters.
        F: Deformation gradient, a row-major 9-tuple.

    Returns:
        C, ∂C/∂F (9-tuple) and κ [Pa] of the first constraint, and those of the second one.
    """


@generic
def inverse_square_safe_radius(material, F, g):
    """q = 1/r² [1/m²] of a radius r within which any vertex step keeps ψ(F + step gᵀ) finite.

    Steps within r need no `step_limit`. It is used for materials with a `barrier`; without an implementation,
    q is 1e30, so that every step needs `step_limit`.

    Args:
        material: Material with uniform parameters.
        F: Deformation gradient, a row-major 9-tuple.
        g: Shape gradient of the vertex [1/m], (3,).

    Returns:
        q [1/m²].
    """


@inverse_square_safe_radius.of(Material)
def _inverse_square_safe_radius(material, F, g):
    return 0.0 * F[0] + 1e30
