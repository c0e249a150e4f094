"""Compiled loops over packs of matrix decompositions and systems with six unknowns."""

from numba import njit

from supple.algebra.svd import rotation_svd, symmetric_eigen
from supple.algebra.symmetric import add_outer6, sandwich_form, solve_spd6, symmetric_matrix, symmetric_part
from supple.kernels import device_function, load, store


@device_function
def load3(data, row, first):
    return (load(data, row, first), load(data, row, first + 1), load(data, row, first + 2))


@device_function
def load6(data, row):
    a, b = load3(data, row, 0), load3(data, row, 3)
    return (a[0], a[1], a[2], b[0], b[1], b[2])


@device_function
def load9(data, row):
    a, b, c = load3(data, row, 0), load3(data, row, 3), load3(data, row, 6)
    return (a[0], a[1], a[2], b[0], b[1], b[2], c[0], c[1], c[2])


@njit
def svd_rows(F, U, sigma, V):
    for row in range(len(F)):
        left, values, right = rotation_svd(load9(F, row))
        for k in range(9):
            store(U, row, k, left[k])
            store(V, row, k, right[k])
        for k in range(3):
            store(sigma, row, k, values[k])


@njit
def eigen_rows(m, values, V):
    for row in range(len(m)):
        s = load6(m, row)
        eigenvalues, axes = symmetric_eigen(s[0], s[1], s[2], s[3], s[4], s[5])
        for k in range(9):
            store(V, row, k, axes[k])
        for k in range(3):
            store(values, row, k, eigenvalues[k])


@njit
def solve_rows(C, K, t, s, b, H, x):
    """Solve H x = b, where H is the quadratic form of (C, K) plus s t tᵀ."""
    for row in range(len(C)):
        lower = add_outer6(sandwich_form(load6(C, row), load6(K, row)), load(s, row, 0), load6(t, row))
        solution = solve_spd6(lower, load6(b, row))
        for k in range(21):
            store(H, row, k, lower[k])
        for k in range(6):
            store(x, row, k, solution[k])


@njit
def symmetric_rows(A, out):
    for row in range(len(A)):
        M = symmetric_matrix(symmetric_part(load9(A, row)))
        for k in range(9):
            store(out, row, k, M[k])
