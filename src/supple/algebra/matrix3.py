"""3-vectors and 3×3 matrices as flat tuples: row-major 9-tuples, and xx yy zz xy xz yz for symmetric
matrices.

Tuples of scalars become registers on every target. Branches are written with `where`.
"""

from supple.kernels import device_function, where


@device_function
def dot(a, b):
    """a · b."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@device_function
def add(a, b):
    """a + b for 3-vectors."""
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2])


@device_function
def sub(a, b):
    """a - b for 3-vectors."""
    return (a[0] - b[0], a[1] - b[1], a[2] - b[2])


@device_function
def cross(a, b):
    """a × b."""
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


@device_function
def scale(s, a):
    """s a for a 3-vector."""
    return (s * a[0], s * a[1], s * a[2])


@device_function
def combine(s, A, t, B):
    """s A + t B for 3×3 matrices."""
    return (
        s * A[0] + t * B[0],
        s * A[1] + t * B[1],
        s * A[2] + t * B[2],
        s * A[3] + t * B[3],
        s * A[4] + t * B[4],
        s * A[5] + t * B[5],
        s * A[6] + t * B[6],
        s * A[7] + t * B[7],
        s * A[8] + t * B[8],
    )


@device_function
def scale_matrix(s, A):
    """s A for a 3×3 matrix."""
    return (s * A[0], s * A[1], s * A[2], s * A[3], s * A[4], s * A[5], s * A[6], s * A[7], s * A[8])


@device_function
def add_diagonal(A, s):
    """A + s I."""
    return (A[0] + s, A[1], A[2], A[3], A[4] + s, A[5], A[6], A[7], A[8] + s)


@device_function
def contract(A, B):
    """A : B = Σ Aᵢⱼ Bᵢⱼ."""
    return (
        A[0] * B[0]
        + A[1] * B[1]
        + A[2] * B[2]
        + A[3] * B[3]
        + A[4] * B[4]
        + A[5] * B[5]
        + A[6] * B[6]
        + A[7] * B[7]
        + A[8] * B[8]
    )


@device_function
def det(A):
    """det A."""
    return (
        A[0] * (A[4] * A[8] - A[5] * A[7])
        + A[1] * (A[5] * A[6] - A[3] * A[8])
        + A[2] * (A[3] * A[7] - A[4] * A[6])
    )


@device_function
def cofactor(A):
    """cof A = ∂det A/∂A = det(A) A⁻ᵀ; also defined for singular A."""
    return (
        A[4] * A[8] - A[5] * A[7],
        A[5] * A[6] - A[3] * A[8],
        A[3] * A[7] - A[4] * A[6],
        A[2] * A[7] - A[1] * A[8],
        A[0] * A[8] - A[2] * A[6],
        A[1] * A[6] - A[0] * A[7],
        A[1] * A[5] - A[2] * A[4],
        A[2] * A[3] - A[0] * A[5],
        A[0] * A[4] - A[1] * A[3],
    )


@device_function
def cofactor_differential(A, B):
    """Directional derivative of cof A along B: cof(A + B) - cof A - cof B."""
    return (
        A[4] * B[8] + B[4] * A[8] - A[5] * B[7] - B[5] * A[7],
        A[5] * B[6] + B[5] * A[6] - A[3] * B[8] - B[3] * A[8],
        A[3] * B[7] + B[3] * A[7] - A[4] * B[6] - B[4] * A[6],
        A[2] * B[7] + B[2] * A[7] - A[1] * B[8] - B[1] * A[8],
        A[0] * B[8] + B[0] * A[8] - A[2] * B[6] - B[2] * A[6],
        A[1] * B[6] + B[1] * A[6] - A[0] * B[7] - B[0] * A[7],
        A[1] * B[5] + B[1] * A[5] - A[2] * B[4] - B[2] * A[4],
        A[2] * B[3] + B[2] * A[3] - A[0] * B[5] - B[0] * A[5],
        A[0] * B[4] + B[0] * A[4] - A[1] * B[3] - B[1] * A[3],
    )


@device_function
def transpose(A):
    """Aᵀ."""
    return (A[0], A[3], A[6], A[1], A[4], A[7], A[2], A[5], A[8])


@device_function
def matvec(A, v):
    """A v."""
    return (
        A[0] * v[0] + A[1] * v[1] + A[2] * v[2],
        A[3] * v[0] + A[4] * v[1] + A[5] * v[2],
        A[6] * v[0] + A[7] * v[1] + A[8] * v[2],
    )


@device_function
def matmul(A, B):
    """A B."""
    return (
        A[0] * B[0] + A[1] * B[3] + A[2] * B[6],
        A[0] * B[1] + A[1] * B[4] + A[2] * B[7],
        A[0] * B[2] + A[1] * B[5] + A[2] * B[8],
        A[3] * B[0] + A[4] * B[3] + A[5] * B[6],
        A[3] * B[1] + A[4] * B[4] + A[5] * B[7],
        A[3] * B[2] + A[4] * B[5] + A[5] * B[8],
        A[6] * B[0] + A[7] * B[3] + A[8] * B[6],
        A[6] * B[1] + A[7] * B[4] + A[8] * B[7],
        A[6] * B[2] + A[7] * B[5] + A[8] * B[8],
    )


@device_function
def outer(a, b):
    """a bᵀ."""
    return (
        a[0] * b[0],
        a[0] * b[1],
        a[0] * b[2],
        a[1] * b[0],
        a[1] * b[1],
        a[1] * b[2],
        a[2] * b[0],
        a[2] * b[1],
        a[2] * b[2],
    )


@device_function
def solve_spd(H, b):
    """Solve H x = b by L D Lᵀ for a symmetric positive definite H, stored as xx yy zz xy xz yz."""
    xx, yy, zz, xy, xz, yz = H
    d1 = 1.0 / xx
    l21 = xy * d1
    l31 = xz * d1
    d2 = 1.0 / (yy - l21 * xy)
    s32 = yz - l31 * xy
    l32 = s32 * d2
    d3 = 1.0 / (zz - l31 * xz - l32 * s32)
    y1 = b[1] - l21 * b[0]
    y2 = b[2] - l31 * b[0] - l32 * y1
    x2 = y2 * d3
    x1 = y1 * d2 - l32 * x2
    x0 = b[0] * d1 - l21 * x1 - l31 * x2
    return (x0, x1, x2)


@device_function
def select3(condition, a, b):
    """Vector a if the condition holds, otherwise b, lane by lane."""
    return where(condition, a[0], b[0]), where(condition, a[1], b[1]), where(condition, a[2], b[2])


@device_function
def select9(condition, A, B):
    """Matrix A if the condition holds, otherwise B, lane by lane."""
    return (
        where(condition, A[0], B[0]),
        where(condition, A[1], B[1]),
        where(condition, A[2], B[2]),
        where(condition, A[3], B[3]),
        where(condition, A[4], B[4]),
        where(condition, A[5], B[5]),
        where(condition, A[6], B[6]),
        where(condition, A[7], B[7]),
        where(condition, A[8], B[8]),
    )


@device_function
def plus9(A, B):
    """A + B for 3×3 matrices."""
    return combine(1.0, A, 1.0, B)


@device_function
def minus9(A, B):
    """A - B for 3×3 matrices."""
    return combine(1.0, A, -1.0, B)


@device_function
def inverse_spd(A):
    """A⁻¹ of a symmetric positive definite 3×3 matrix."""
    C = cofactor(A)
    return scale_matrix(1.0 / (A[0] * C[0] + A[1] * C[1] + A[2] * C[2]), C)
