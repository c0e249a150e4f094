"""Symmetric 3×3 matrices as six-vectors xx yy zz xy xz yz, and their 6×6 systems."""

from supple.kernels import device_function, where


@device_function
def solve_spd6(H, b):
    """Solve H x = b by unrolled L D Lᵀ; H symmetric positive definite as the 21 entries of its lower
    triangle."""
    d0 = 1.0 / (H[0])
    c10 = H[1]
    l10 = c10 * d0
    c20 = H[3]
    l20 = c20 * d0
    c30 = H[6]
    l30 = c30 * d0
    c40 = H[10]
    l40 = c40 * d0
    c50 = H[15]
    l50 = c50 * d0
    d1 = 1.0 / (H[2] - l10 * c10)
    c21 = H[4] - l20 * c10
    l21 = c21 * d1
    c31 = H[7] - l30 * c10
    l31 = c31 * d1
    c41 = H[11] - l40 * c10
    l41 = c41 * d1
    c51 = H[16] - l50 * c10
    l51 = c51 * d1
    d2 = 1.0 / (H[5] - l20 * c20 - l21 * c21)
    c32 = H[8] - l30 * c20 - l31 * c21
    l32 = c32 * d2
    c42 = H[12] - l40 * c20 - l41 * c21
    l42 = c42 * d2
    c52 = H[17] - l50 * c20 - l51 * c21
    l52 = c52 * d2
    d3 = 1.0 / (H[9] - l30 * c30 - l31 * c31 - l32 * c32)
    c43 = H[13] - l40 * c30 - l41 * c31 - l42 * c32
    l43 = c43 * d3
    c53 = H[18] - l50 * c30 - l51 * c31 - l52 * c32
    l53 = c53 * d3
    d4 = 1.0 / (H[14] - l40 * c40 - l41 * c41 - l42 * c42 - l43 * c43)
    c54 = H[19] - l50 * c40 - l51 * c41 - l52 * c42 - l53 * c43
    l54 = c54 * d4
    d5 = 1.0 / (H[20] - l50 * c50 - l51 * c51 - l52 * c52 - l53 * c53 - l54 * c54)
    y0 = b[0]
    y1 = b[1] - l10 * y0
    y2 = b[2] - l20 * y0 - l21 * y1
    y3 = b[3] - l30 * y0 - l31 * y1 - l32 * y2
    y4 = b[4] - l40 * y0 - l41 * y1 - l42 * y2 - l43 * y3
    y5 = b[5] - l50 * y0 - l51 * y1 - l52 * y2 - l53 * y3 - l54 * y4
    x5 = y5 * d5
    x4 = y4 * d4 - l54 * x5
    x3 = y3 * d3 - l43 * x4 - l53 * x5
    x2 = y2 * d2 - l32 * x3 - l42 * x4 - l52 * x5
    x1 = y1 * d1 - l21 * x2 - l31 * x3 - l41 * x4 - l51 * x5
    x0 = y0 * d0 - l10 * x1 - l20 * x2 - l30 * x3 - l40 * x4 - l50 * x5
    return (x0, x1, x2, x3, x4, x5)


@device_function
def sandwich_form(C, K):
    """Matrix H with mᵀ H m = tr(M C M K) for a symmetric M: the quadratic form of M ↦ ½ tr(M C M K).

    H is stored as the 21 entries of its lower triangle; C and K are symmetric, as xx yy zz xy xz yz.
    """
    return (
        C[0] * K[0],
        C[3] * K[3],
        C[1] * K[1],
        C[4] * K[4],
        C[5] * K[5],
        C[2] * K[2],
        C[0] * K[3] + C[3] * K[0],
        C[1] * K[3] + C[3] * K[1],
        C[4] * K[5] + C[5] * K[4],
        C[0] * K[1] + C[1] * K[0] + 2.0 * C[3] * K[3],
        C[0] * K[4] + C[4] * K[0],
        C[3] * K[5] + C[5] * K[3],
        C[2] * K[4] + C[4] * K[2],
        C[0] * K[5] + C[3] * K[4] + C[4] * K[3] + C[5] * K[0],
        C[0] * K[2] + C[2] * K[0] + 2.0 * C[4] * K[4],
        C[3] * K[4] + C[4] * K[3],
        C[1] * K[5] + C[5] * K[1],
        C[2] * K[5] + C[5] * K[2],
        C[1] * K[4] + C[3] * K[5] + C[4] * K[1] + C[5] * K[3],
        C[2] * K[3] + C[3] * K[2] + C[4] * K[5] + C[5] * K[4],
        C[1] * K[2] + C[2] * K[1] + 2.0 * C[5] * K[5],
    )


@device_function
def add_outer6(H, s, t):
    """H + s t tᵀ for a lower triangle of 21 entries and a six-vector t."""
    return (
        H[0] + s * t[0] * t[0],
        H[1] + s * t[1] * t[0],
        H[2] + s * t[1] * t[1],
        H[3] + s * t[2] * t[0],
        H[4] + s * t[2] * t[1],
        H[5] + s * t[2] * t[2],
        H[6] + s * t[3] * t[0],
        H[7] + s * t[3] * t[1],
        H[8] + s * t[3] * t[2],
        H[9] + s * t[3] * t[3],
        H[10] + s * t[4] * t[0],
        H[11] + s * t[4] * t[1],
        H[12] + s * t[4] * t[2],
        H[13] + s * t[4] * t[3],
        H[14] + s * t[4] * t[4],
        H[15] + s * t[5] * t[0],
        H[16] + s * t[5] * t[1],
        H[17] + s * t[5] * t[2],
        H[18] + s * t[5] * t[3],
        H[19] + s * t[5] * t[4],
        H[20] + s * t[5] * t[5],
    )


@device_function
def axial_and_isotropic(s, n, t):
    """s n nᵀ + t I as xx yy zz xy xz yz."""
    return (
        s * n[0] * n[0] + t,
        s * n[1] * n[1] + t,
        s * n[2] * n[2] + t,
        s * n[0] * n[1],
        s * n[0] * n[2],
        s * n[1] * n[2],
    )


@device_function
def symmetric_part(A):
    """½ (A + Aᵀ) of a 3×3 matrix as xx yy zz xy xz yz."""
    return (A[0], A[4], A[8], 0.5 * (A[1] + A[3]), 0.5 * (A[2] + A[6]), 0.5 * (A[5] + A[7]))


@device_function
def symmetric_matrix(m):
    """3×3 matrix of a symmetric one stored as xx yy zz xy xz yz."""
    return (m[0], m[3], m[4], m[3], m[1], m[5], m[4], m[5], m[2])


@device_function
def dot6(a, b):
    """a · b for six-vectors."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3] + a[4] * b[4] + a[5] * b[5]


@device_function
def axpy6(a, t, b):
    """a + t b for six-vectors."""
    return (
        a[0] + t * b[0],
        a[1] + t * b[1],
        a[2] + t * b[2],
        a[3] + t * b[3],
        a[4] + t * b[4],
        a[5] + t * b[5],
    )


@device_function
def select6(condition, a, b):
    """Six-vector a if the condition holds, otherwise b, lane by lane."""
    return (
        where(condition, a[0], b[0]),
        where(condition, a[1], b[1]),
        where(condition, a[2], b[2]),
        where(condition, a[3], b[3]),
        where(condition, a[4], b[4]),
        where(condition, a[5], b[5]),
    )


@device_function
def add_trace_multiple6(H, part):
    """H + e I with e = part · tr H, for a lower triangle of 21 entries."""
    e = part * (H[0] + H[2] + H[5] + H[9] + H[14] + H[20]) + 1e-30
    return (
        H[0] + e, H[1], H[2] + e, H[3], H[4], H[5] + e, H[6], H[7], H[8], H[9] + e, H[10], H[11], H[12],
        H[13], H[14] + e, H[15], H[16], H[17], H[18], H[19], H[20] + e,
    )  # fmt: skip
