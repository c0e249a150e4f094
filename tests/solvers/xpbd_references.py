"""XPBD and its relatives from the papers, element after element, in NumPy."""

import family
import numpy as np

from supple.config.stop_criteria import StopCriteria
from supple.solve.batch_solve import solve


def neo_hookean_pair(F, mu, lam):
    """[(C, ∂C/∂F, k)] of BNH eq. 8 and 9, λ̂ = λ + μ."""
    stiff = lam + mu
    J = np.linalg.det(F)
    norm = np.linalg.norm(F)
    return [(J - 1 - mu / stiff, J * np.linalg.inv(F).T, stiff), (norm, F / norm, mu)]


def corotated_pair(F, mu, lam):
    """[(C, ∂C/∂F, k)] of PXPBD eq. 5 with ε = 1e-12."""
    U, _, V = np.linalg.svd(F)
    R = U @ np.diag([1, 1, np.linalg.det(U @ V)]) @ V
    J = np.linalg.det(F)
    C = np.sqrt(np.linalg.norm(F - R) ** 2 + 1e-12)
    return [(C, (F - R) / C, 2 * mu), (J - 1, J * np.linalg.inv(F).T, lam)]


class Reference:
    """XPBD, block XPBD and B-PXPBD, element by element as in the papers' boxes, on NumPy arrays."""

    def __init__(self, problem, run, pair, zeta):
        model = problem.model
        self.term, self.pair, self.zeta = model.terms[0], pair, zeta
        self.W = run.weights[:-1]
        self.x = family.predicted(problem, run)
        self.lam = np.zeros((len(self.term.vertices), 2))
        self.total = np.zeros((len(self.term.vertices), 2, 4, 3))
        element = run._element_batches(0).element
        self.order = element[element >= 0]

    def constraints(self, e):
        t = self.term
        F = self.x[t.vertices[e]].T @ t.gradients[e]
        pair_constraints = self.pair(F, t.material.mu, t.material.lam)
        return [(C, t.gradients[e] @ D.T, k * t.volume[e]) for C, D, k in pair_constraints]

    def sweep_decoupled(self):
        """BNH Algorithm 2 and, where ζ < 1, PXPBD Algorithm 1."""
        for e in self.order:
            w = self.W[self.term.vertices[e], None]
            for c in range(2):
                C, gradient, k = self.constraints(e)[c]
                step = -(C + self.lam[e, c] / k) / (np.sum(w * gradient**2) + 1 / k)
                self.lam[e, c] += step
                fixed_point = self.lam[e, c] * w * gradient - self.total[e, c]
                move = self.zeta * step * w * gradient + (1 - self.zeta) * fixed_point
                self.total[e, c] += move
                self.x[self.term.vertices[e]] += move

    def sweep_coupled(self):
        """BNH eq. 17 to 19."""
        for e in self.order:
            w = self.W[self.term.vertices[e], None]
            (C, a, k), (D, b, l) = self.constraints(e)
            A = np.array([[np.sum(w * a * a), np.sum(w * a * b)], [np.sum(w * a * b), np.sum(w * b * b)]])
            A += np.diag([1 / k, 1 / l])
            step = np.linalg.solve(A, -np.array([C, D]) - self.lam[e] / [k, l])
            self.lam[e] += step
            self.x[self.term.vertices[e]] += w * (step[0] * a + step[1] * b)


def curve(falling, solver, sweeps=200):
    scene, x, v = falling
    return np.array(
        solve(
            family.placed(scene, x, v), solver, StopCriteria(None, sweeps, None), record_history=True
        ).history.residual
    )
