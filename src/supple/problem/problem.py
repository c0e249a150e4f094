"""The problem every solver works on: minimise the (incremental) potential of one step.

E(u) = Σ terms(u) - f · u + ½ Σ kᵢ |uᵢ - ûᵢ|² over the displacements u of the free vertices, with external
forces f. In quasistatics k = 0 [PBNG eq. 17]; for backward Euler k = m/Δt² and û = uₙ + Δt vₙ [PBNG eq. 20].
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from supple.model import Conditions, Model
from supple.problem.balance import Balance
from supple.problem.contacts import Contacts
from supple.problem.device import Cpu, Device
from supple.problem.follower_loads import FollowerLoads
from supple.problem.following import Following
from supple.problem.gases import Gases
from supple.problem.initial_guess import predict_fall
from supple.problem.layout import Layout
from supple.problem.loads import Loads, alike
from supple.problem.materials import change_materials, materials_of, still_of_use, with_materials
from supple.problem.measures import Measures
from supple.problem.refresh import refresh, take_stencils
from supple.problem.remembered import Remembered
from supple.problem.room import Room
from supple.problem.states import States, slow_down
from supple.state import State
from supple.terms import Term, same_kind


def check_precision(precision: str) -> None:
    if precision not in ("float32", "float64"):
        raise ValueError(f"precision must be 'float32' or 'float64', got {precision!r}")


class Problem:
    """The potential of one step of a model in working precision.

    What is constant is in `layout`, what changes in `states`, what acts from outside in `loads`, what is
    touched in `contacts`; `device` runs kernels on all of it, `measures` says how far a solver has come, and
    `following` lets stencils follow the vertices. varied: copies of the state may have materials of their
    own. keeps_prepared: what solvers have prepared for one material serves others too where it can, at the
    cost that results depend, by rounding, on which material it was. contacts: what makes its contacts.
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
        check_precision(precision)
        self.model, self.dtype = model, np.dtype(precision)
        self.device: Device = device or Cpu(model.vertices + 1, self.dtype, threads)
        self.layout = Layout(model, self.dtype, self.device, varied)
        batches = self.layout.vertices
        self.device.suit(len(batches.own) // max(1, batches.colours))
        self.states = States(model, self.dtype, self.device)
        self.loads = Loads(model, batches, self.dtype, self.device)
        self.loads.hold_at(self.states.held_at)
        self.contacts = contacts(model, self.dtype, self.device, self.states)
        self.loads.touch(self.contacts.planes)
        self.room = Room(model, self.dtype, self.device, self.states, self.contacts)
        self.loads.stay_in(self.room.balls)
        self.measures, self.gases = Measures(self), Gases(self)
        self.following = Following(self)
        self.follower_loads = FollowerLoads(self)
        self.remembered = self.states.remembered = Remembered(self)
        self._shared: dict[str, Any] = {}
        self.keeps_prepared = False
        if self.layout.room is not None:
            take_stencils(self)
        self._upload()

    def _upload(self) -> None:
        rows = tuple((elements.own, elements.rows) for elements in self.layout.elements)
        self.device.upload((self.layout.terms, self.loads.rows, self.states.arrays, rows))

    @property
    def copies(self) -> int:
        """Of the state."""
        return self.device.copies

    @property
    def kinds(self) -> int:
        """How many of the copies are of different materials."""
        return self.copies if self.layout.varied else 1

    @property
    def u(self) -> np.ndarray:
        """Records of the displacements."""
        return self.states.u

    @property
    def positions(self) -> np.ndarray:
        """(n, 3) float64 [m] of the first copy; to set them is for all."""
        return self.states.positions[0]

    @positions.setter
    def positions(self, positions: np.ndarray) -> None:
        self.states.positions, self.room.checked = positions, False

    @property
    def state(self) -> State:
        """What the next step of the first copy goes on from; to set it is for all."""
        return self.states.take()[0]

    @state.setter
    def state(self, state: State) -> None:
        self.states.put([state] * self.copies)
        self.room.checked = False

    def hold(self, copies: int) -> None:
        """Work on so many copies of the state from now on, each of which moves in time."""
        self._resize(copies, moving=True)
        self.loads.resize(copies)
        self.loads.set(self.model.force)
        self._upload()

    def take(self, conditions: Sequence[Conditions]) -> bool:
        """Go over to equilibria under other conditions, one copy of the state for each; what is the same for
        all of them stays where it is. False where their materials need a new problem."""
        if not self.layout.suits(conditions):
            return False
        self._resize(len(conditions), moving=len(conditions) == 1)
        changed = self.layout.take(conditions)
        self.model = self.layout.model
        if len(conditions) == 1 and conditions[0].materials is not None:
            self.model = with_materials(self.model, conditions[0].materials)
        if changed:
            self.measures.forget()
            self.forget_but(*still_of_use(self))
        self._shared.pop("linearisation", None)  # which would go on from an earlier state
        forces = alike([c.force for c in conditions])
        self.loads.resize(len(forces) if forces.ndim == 3 else 1)
        self.loads.set(forces)
        aims = [c.pinned for c in conditions]
        if self.room:
            aims[:1] = [self.room.begin(conditions[0])]
        else:
            self.states.begin(conditions)
        if self.model.held is not None:
            self.states.aim(np.stack(aims))
        self.contacts.begin_anew([c.time for c in conditions])
        self._upload()
        self.remembered.forget()
        self.following.remember()
        self.following.begin_step(math.inf)
        return True

    def set_parameters(self, term: int, material: Any) -> None:
        """Give a term of the model a material that differs from its own in values only, as an activation that
        varies in time, for all copies of the state. What is uniform stays so, and nothing is laid out or
        compiled anew. A solve that has begun must begin again."""
        self.device.wait()  # what it has yet to do is for the parameters that there were
        terms = list(self.model.terms)
        old: Any = terms[term]
        if not same_kind(old.material, material):
            raise ValueError(
                f"the parameters of {old.name} can get other values; which of them differ from element to "
                f"element, and the kind of material, stay as they are, {old.material!r}; got {material!r}"
            )
        terms[term] = replace(old, material=material)
        self.model = replace(self.model, terms=tuple(terms))
        self.use_materials(self.remembered.keep([materials_of(self.model)] * self.copies))

    def use_materials(self, materials: list[tuple]) -> None:
        """Go over to materials that differ in values only, one of each term for each copy."""
        if self.copies == 1:
            self.model = with_materials(self.model, materials[0])
        self.layout.use(materials)
        self.measures.forget()
        self.forget_but(*still_of_use(self))
        self._upload()

    def _resize(self, copies: int, moving: bool) -> None:
        if copies != self.copies:
            self.device.hold(copies)
            self.measures.forget()
            self.forget_but()
        self.states.resize(copies, moving)
        self.loads.hold_at(self.states.held_at)
        self.contacts.resize()
        self.loads.touch(self.contacts.planes)
        self.room.resize()
        self.loads.stay_in(self.room.balls)

    def refresh(self, index: int, term: Term) -> None:
        """Exchange the stencils of a term with a capacity for those of another of its kind, between steps or
        between sweeps. What a solve goes on from, u and all that moves, stays as it is."""
        if index in self.gases.indices:
            self.gases.take(index, term)  # type: ignore[arg-type]
        elif index in self.follower_loads.indices:
            self.follower_loads.take(index, term)
            self.layout.version += 1
        else:
            refresh(self, index, term)

    def forget_but(self, *beginnings: str) -> None:
        """Let go of what solvers have prepared, but for names that begin so."""
        self._shared = {name: found for name, found in self._shared.items() if name.startswith(beginnings)}

    def zeros(self, shape: tuple[int, ...]) -> np.ndarray:
        """Memory for numbers in the working precision."""
        return self.device.zeros(shape, self.dtype)

    def shared(self, name: str, make: Callable[[], Any], anew: bool = False) -> Any:
        """What a solver prepares once for all steps of this problem; anew: what is there no longer suits."""
        if anew or name not in self._shared:
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
        """Set up the step that ends at a time [s]: with inertia over dt [s] from where the last one has ended
        or the velocities that were set (`States.coast`), or the equilibrium. forces (n, 3) [N] act beside the
        model's; pins (k, 3) [m]: where pinned vertices are, instead of where the model has them then;
        guess: where a solver starts, one of `INITIAL_GUESSES`."""
        change_materials(self, self.model.materials_at(time))
        self.loads.act_at(time, forces)
        self.contacts.begin_step(time, dt, damping)
        self.following.remember()
        pinned = self.model.prescribed(time) if pins is None else pins
        if self.room:
            self.following.make_room()
            pinned = self.room.aim(time, pinned, pins is not None)
        if math.isinf(dt):
            self.states.pin(pinned)
            self.remembered.forget_motions()
        else:
            self.states.coast(dt, damping, pinned)
            if self.model.drag is not None:
                slow_down(self.states, self.model.drag * dt)
            predict_fall(self, guess, time)
        self.contacts.arrive()
        if math.isinf(dt):
            self.room.put_back()
        else:
            self.following.fly()
        self.following.begin_step(time)

    def set_inertia(self, dt: float, anchor: np.ndarray) -> None:
        """Make this a backward Euler step: k = m/Δt² and û = anchor - rest, (n, 3) positions."""
        self.loads.set_time_step(dt)
        self.states.set_anchor(anchor)

    def balance(self) -> Balance:
        """Of the first copy."""
        return self.measures.balances()[0]

    def energy(self) -> float:
        """E(u) of the first copy [J]."""
        return float(self.measures.energies()[0])
