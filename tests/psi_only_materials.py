"""The materials with hand-written derivatives, defined again by ψ only."""

import math

from supple.algebra.matrix3 import add_diagonal, combine, contract, matmul, scale_matrix, transpose
from supple.algebra.rotation import stretch_trace
from supple.materials import Isotropic


class Corotated(Isotropic):
    def psi(self, I1, I2, J):
        return self.mu * (I1 - 2 * stretch_trace(I1, I2, J) + 3) + 0.5 * self.lam * (J - 1) ** 2


class NeoHookean(Isotropic):
    def psi(self, I1, J):
        return 0.5 * self.mu * (I1 - 3) + 0.5 * (self.lam + self.mu) * (J - 1) ** 2 - self.mu * (J - 1)


class StableNeoHookean(Isotropic):
    def psi(self, I1, J):
        m, stiffness = 4 / 3 * self.mu, self.lam + 5 / 6 * self.mu
        alpha = 1 + 0.75 * m / stiffness
        volume = 0.5 * stiffness * ((J - alpha) ** 2 - (1 - alpha) ** 2)
        return 0.5 * m * (I1 - 3 - math.log((1 + I1) / 4)) + volume


class LogNeoHookean(Isotropic):
    def psi(self, I1, J):
        return 0.5 * self.mu * (I1 - 3) - self.mu * math.log(J) + 0.5 * self.lam * math.log(J) ** 2


class StVK(Isotropic):
    def psi(self, F):
        E = scale_matrix(0.5, add_diagonal(matmul(transpose(F), F), -1.0))
        return self.mu * contract(E, E) + 0.5 * self.lam * (E[0] + E[4] + E[8]) ** 2


class LinearElastic(Isotropic):
    objective = False

    def psi(self, F):
        strain = add_diagonal(combine(0.5, F, 0.5, transpose(F)), -1.0)
        trace = strain[0] + strain[4] + strain[8]
        return self.mu * contract(strain, strain) + 0.5 * self.lam * trace * trace


class StretchedCorotated(Isotropic):
    """The corotated material in principal stretches."""

    def psi(self, stretches):
        x, y, z = stretches
        shear = (x - 1) ** 2 + (y - 1) ** 2 + (z - 1) ** 2
        return self.mu * shear + 0.5 * self.lam * (x * y * z - 1) ** 2


PSI_ONLY = {
    "corotated": Corotated,
    "neo_hookean": NeoHookean,
    "stable_neo_hookean": StableNeoHookean,
    "log_neo_hookean": LogNeoHookean,
    "stvk": StVK,
    "linear_elastic": LinearElastic,
}
"""Classes of this module by the names of the materials with formulas."""
