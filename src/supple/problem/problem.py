"""Minimization problem of every solver: the (incremental) potential of one step.

E(u) = Σ terms(u) - f · u + ½ Σ kᵢ |uᵢ - ûᵢ|² over the displacements u of the free vertices, with external
forces f. In quasistatics k = 0 [PBNG eq. 17]; for backward Euler k = m/Δt² and û = uₙ + Δt vₙ [PBNG eq. 20].
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from supple.contact.state.dynamic_term_updates import DynamicTerms
from supple.contact.state.obstacle_contact import Contacts
from supple.contact.state.trust_region import TrustRegion
from supple.model.model import Conditions, Model
from supple.model.state import State
from supple.problem.device import Cpu, Device
from supple.problem.diagnostics import Diagnostics
from supple.problem.follower_loads import FollowerLoads, Gases
from supple.problem.history_variables import HistoryVariables
from supple.problem.initial_guess import predict_fall
from supple.problem.layout import Layout, pack_stencils, refresh
from supple.problem.loads import Loads, share_or_stack
from supple.problem.material_update import (
    change_materials,
    materials_of,
    valid_prefixes,
    with_materials,
)
from supple.problem.residual import Balance
from supple.problem.states import States, apply_drag
from supple.terms import Term, have_same_kernels


def check_precision(precision: str) -> None:
    if precision not in ("float32", "float64"):
        raise ValueError(f"precision must be 'float32' or 'float64', got {precision!r}")


class Problem:
    """The potential of one step of a model in working precision.

    Attributes:
        model: Model with the current terms and materials.
        dtype: Working precision.
        device: Device that runs the kernels.
        layout: Packed element data, constant during a solve except for dynamic stencils.
        states: Displacements, velocities and net forces of the batch.
        loads: External forces and inertia.
        contacts: Obstacle contact.
        trust_region: Step bounds of the vertices under intersection-free contact.
        diagnostics: Residuals, energies and inversion counts.
        gases: Sealed chambers.
        dynamic_terms: Updates of dynamic terms.
        history: History variables.
        keeps_prepared: True to reuse prepared solver data for other material values where possible. Results
            then depend, by rounding, on the material for which the data was prepared.
    """

    def __init__(
        self,
        model: Model,
        precision: str,
        threads: int | None = None,
        device: Device | None = None,
        varied: bool = False,
        contacts: Callable[..., Contacts] = Contacts,
    ) -> None:
        """Pack a model and allocate its state on a device.

        Args:
            model: Model with n vertices.
            precision: "float32" or "float64".
            threads: Number of CPU threads; None for the default.
            device: Device that runs the kernels; None for the CPU.
            varied: True if each batch member has its own materials.
            contacts: Factory of the obstacle contact.
        """
        check_precision(precision)
        self.model, self.dtype = model, np.dtype(precision)
        self.device: Device = device or Cpu(model.vertices + 1, self.dtype, threads)
        self.layout = Layout(model, self.dtype, self.device, varied)
        batches = self.layout.vertices
        self.device.limit_threads(len(batches.own) // max(1, batches.colors))
        self.states = States(model, self.dtype, self.device)
        self.loads = Loads(model, batches, self.dtype, self.device)
        self.loads.set_constrained(self.states.constrained_at)
        self.contacts = contacts(model, self.dtype, self.device, self.states)
        self.loads.set_contact_planes(self.contacts.planes)
        self.trust_region = TrustRegion(model, self.dtype, self.device, self.states, self.contacts)
        self.loads.set_step_bounds(self.trust_region.step_bounds)
        self.diagnostics, self.gases = Diagnostics(self), Gases(self)
        self.dynamic_terms = DynamicTerms(self)
        self.follower_loads = FollowerLoads(self)
        self.history = self.states.history = HistoryVariables(self)
        self._shared: dict[str, Any] = {}
        self.keeps_prepared = False
        if self.layout.dynamic_batches is not None:
            pack_stencils(self)
        self._upload()

    def _upload(self) -> None:
        rows = tuple((elements.own, elements.rows) for elements in self.layout.elements)
        self.device.upload_all((self.layout.terms, self.loads.rows, self.states.arrays, rows))

    @property
    def batch_size(self) -> int:
        """Batch size."""
        return self.device.batch_size

    @property
    def material_batch_size(self) -> int:
        """Number of material sets in the batch: the batch size if materials vary, otherwise 1."""
        return self.batch_size if self.layout.varied else 1

    @property
    def u(self) -> np.ndarray:
        """(batch (n + 1), 4) displacements as padded vectors [m]."""
        return self.states.u

    @property
    def positions(self) -> np.ndarray:
        """(n, 3) float64 positions of the first batch member [m]; the setter applies to the whole batch."""
        return self.states.positions[0]

    @positions.setter
    def positions(self, positions: np.ndarray) -> None:
        self.states.positions, self.trust_region.checked = positions, False

    @property
    def state(self) -> State:
        """State from which the first batch member continues; the setter applies to the whole batch."""
        return self.states.get_states()[0]

    @state.setter
    def state(self, state: State) -> None:
        self.states.set_states([state] * self.batch_size)
        self.trust_region.checked = False

    def set_batch_size(self, batch_size: int) -> None:
        """Set the batch size for time stepping and reset the external forces to those of the model."""
        self._resize(batch_size, moving=True)
        self.loads.resize(batch_size)
        self.loads.set(self.model.force)
        self._upload()

    def set_conditions(self, conditions: Sequence[Conditions]) -> bool:
        """Set up equilibria under other conditions, one per batch member.

        Data that is the same for all conditions is kept.

        Args:
            conditions: Conditions of each batch member.

        Returns:
            False if the materials of the conditions require a new problem.
        """
        if not self.layout.is_compatible(conditions):
            return False
        self._resize(len(conditions), moving=len(conditions) == 1)
        changed = self.layout.set_conditions(conditions)
        self.model = self.layout.model
        if len(conditions) == 1 and conditions[0].materials is not None:
            self.model = with_materials(self.model, conditions[0].materials)
        if changed:
            self.diagnostics.invalidate()
            self.invalidate_except(*valid_prefixes(self))
        self._shared.pop("linearization", None)  # it would continue from an earlier state
        forces = share_or_stack([c.force for c in conditions])
        self.loads.resize(len(forces) if forces.ndim == 3 else 1)
        self.loads.set(forces)
        targets = [c.pinned for c in conditions]
        if self.trust_region:
            targets[:1] = [self.trust_region.begin(conditions[0])]
        else:
            self.states.begin(conditions)
        if self.model.constraint_projection is not None:
            self.states.set_targets(np.stack(targets))
        self.contacts.begin_equilibria([c.time for c in conditions])
        self._upload()
        self.history.clear()
        self.dynamic_terms.record_friction()
        self.dynamic_terms.begin_step(math.inf)
        return True

    def set_parameters(self, term: int, material: Any) -> None:
        """Replace the material values of one term, for all batch members.

        Uniform parameters stay uniform, and nothing is packed or compiled again. Used for parameters that
        vary in time, such as an activation. A solve in progress must be restarted.

        Args:
            term: Index of the term in the model.
            material: Material of the same class, with the same parameters per element.

        Raises:
            ValueError: The material differs in class or in which parameters are given per element.
        """
        self.device.wait()  # pending kernels use the old parameters
        terms = list(self.model.terms)
        old: Any = terms[term]
        if not have_same_kernels(old.material, material):
            raise ValueError(
                f"a new material of {old.name} must be of the same class, and uniform in the same "
                f"parameters, as {old.material!r}; got {material!r}"
            )
        terms[term] = replace(old, material=material)
        self.model = replace(self.model, terms=tuple(terms))
        self.use_materials(self.history.insert_into([materials_of(self.model)] * self.batch_size))

    def use_materials(self, materials: list[tuple]) -> None:
        """Set materials that differ in values only.

        Args:
            materials: For each batch member, one material per elastic term.
        """
        if self.batch_size == 1:
            self.model = with_materials(self.model, materials[0])
        self.layout.set_materials(materials)
        self.diagnostics.invalidate()
        self.invalidate_except(*valid_prefixes(self))
        self._upload()

    def _resize(self, batch_size: int, moving: bool) -> None:
        if batch_size != self.batch_size:
            self.device.set_batch_size(batch_size)
            self.diagnostics.invalidate()
            self.invalidate_except()
        self.states.resize(batch_size, moving)
        self.loads.set_constrained(self.states.constrained_at)
        self.contacts.resize()
        self.loads.set_contact_planes(self.contacts.planes)
        self.trust_region.resize()
        self.loads.set_step_bounds(self.trust_region.step_bounds)

    def refresh(self, index: int, term: Term) -> None:
        """Replace the stencils of a dynamic term, between steps or between sweeps.

        The state of the solve, u included, is unchanged.

        Args:
            index: Index of the term in the model.
            term: Term of the same class with the new stencils; for a sealed chamber, its gas.
        """
        if index in self.gases.indices:
            self.gases.set_gas(index, term)  # type: ignore[arg-type]
        elif index in self.follower_loads.indices:
            self.follower_loads.set_term(index, term)
            self.layout.version += 1
        else:
            refresh(self, index, term)

    def invalidate_except(self, *prefixes: str) -> None:
        """Discard prepared solver data, except names with one of the given prefixes."""
        self._shared = {name: data for name, data in self._shared.items() if name.startswith(prefixes)}

    def zeros(self, shape: tuple[int, ...]) -> np.ndarray:
        """Allocate zeroed memory in the working precision."""
        return self.device.zeros(shape, self.dtype)

    def get_shared(self, name: str, make: Callable[[], Any], recompute: bool = False) -> Any:
        """Return cached solver data, computed once for all steps of this problem.

        Args:
            name: Key of the data.
            make: Function that computes the data.
            recompute: True to compute the data again.
        """
        if recompute or name not in self._shared:
            self._shared[name] = make()
        return self._shared[name]

    def begin_step(
        self,
        time: float,
        dt: float = math.inf,
        damping: float = 0.0,
        forces: np.ndarray | None = None,
        pins: np.ndarray | None = None,
        guess: str = "coast",
    ) -> None:
        """Set up the step that ends at a given time.

        With a finite `dt` the step has inertia and starts from the end of the last step, or from the
        velocities that were set (`States.predict`). With dt = inf it is an equilibrium.

        Args:
            time: End of the step [s].
            dt: Step size [s]; inf for quasistatics.
            damping: Fraction of the velocities lost in the previous step.
            forces: (n, 3) additional external forces [N].
            pins: (k, 3) prescribed positions of the pinned vertices [m]; None for those of the model at
                `time`.
            guess: Initial guess, one of `INITIAL_GUESSES`.
        """
        change_materials(self, self.model.materials_at(time))
        self.loads.set_time(time, forces)
        self.contacts.begin_step(time, dt, damping)
        self.dynamic_terms.record_friction()
        pinned = self.model.prescribed(time) if pins is None else pins
        if self.trust_region:
            self.dynamic_terms.set_step_bounds()
            pinned = self.trust_region.set_targets(time, pinned, pins is not None)
        if math.isinf(dt):
            self.states.pin(pinned)
            self.history.clear_motions()
        else:
            self.states.predict(dt, damping, pinned)
            if self.model.drag is not None:
                apply_drag(self.states, self.model.drag * dt)
            predict_fall(self, guess, time)
        self.contacts.arrive()
        if math.isinf(dt):
            self.trust_region.restore_bounds()
        else:
            self.dynamic_terms.advance_bodies()
        self.dynamic_terms.begin_step(time)

    def set_inertia(self, dt: float, anchor: np.ndarray) -> None:
        """Make this a backward Euler step: k = m/Δt² and û = anchor - rest.

        Args:
            dt: Step size Δt [s].
            anchor: (n, 3) positions [m].
        """
        self.loads.set_time_step(dt)
        self.states.set_anchor(anchor)

    def balance(self) -> Balance:
        """Evaluate the residual of the first batch member."""
        return self.diagnostics.balances()[0]

    def energy(self) -> float:
        """E(u) of the first batch member [J]."""
        return float(self.diagnostics.energies()[0])
