"""6×6 matrices as 36 entries in row-major order; symmetric matrices as the upper triangle, row by row."""

from supple.kernels import unroll

_SIX = range(6)


def _entry_index(i: int, j: int) -> int:
    """Index of an entry in the upper triangle of a symmetric matrix, row by row."""
    i, j = min(i, j), max(i, j)
    return 6 * i - i * (i + 1) // 2 + j


product = unroll(
    "M, P",
    lambda n: ", ".join(
        " + ".join(f"M[{6 * i + k}] * P[{_entry_index(k, j)}]" for k in _SIX) for i in _SIX for j in _SIX
    ),
    over="M",
)
"""M P with a symmetric P."""

curvature = unroll(
    "K, s, T, M",
    lambda n: ", ".join(
        f"K[{6 * i + j}] + s * ({' + '.join(f'T[{6 * i + k}] * M[{6 * j + k}]' for k in _SIX)})"
        for i in _SIX
        for j in range(i + 1)
    ),
    over="M",
)
"""Lower triangle of K + s T Mᵀ."""

slacks = unroll(
    "z, H",
    lambda n: ", ".join(
        f"z[{i}] * (z[{i}] * H[{_entry_index(i, i)}] - ("
        + " + ".join(f"z[{j}] * abs(H[{_entry_index(i, j)}])" for j in range(n) if j != i)
        + "))"
        for i in range(n)
    ),
    over="z",
)
"""Gershgorin bounds on the eigenvalues of a symmetric H, for variables with scales z."""

add_to_diagonal = unroll(
    "z, H, s",
    lambda n: ", ".join(
        f"H[{_entry_index(i, j)}]" + (f" + s / (z[{i}] * z[{i}])" if i == j else "")
        for i in range(n)
        for j in range(i, n)
    ),
    over="z",
)
"""H with s added to the diagonal, for variables with scales z."""

matvec = unroll(
    "v, M",
    lambda n: ", ".join(" + ".join(f"M[{n * i + k}] * v[{k}]" for k in range(n)) for i in range(n)),
    over="v",
)
"""Matrix-vector product M v."""
