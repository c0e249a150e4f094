"""Equal physics on every target: compiled scalars, SIMD packs, plain Python, CUDA threads."""

import json
import os
import subprocess
import sys
from pathlib import Path

import material_targets
import numpy as np
import pytest
from problems import (
    BARRIERS,
    FINITE,
    HAND_WRITTEN,
    NEARLY_CANCELLING,
    YOUNG,
    deformations,
    material,
    stretches,
)

from supple.materials import MATERIALS, psi, vertex_response

BY_LAME = [name for name, kind in HAND_WRITTEN.items() if kind._fields == ("mu", "lam")]


def inputs(name):
    """48 pairs (F, D), with inverted and singular F for materials that allow them."""
    F = deformations(48)
    if not MATERIALS[name].barrier:
        F[16:24] = deformations(8, inverted=True)
        F[24:32] = stretches((1.5, 0.7, 0), 8)
        for k, values in enumerate(NEARLY_CANCELLING[:3]):
            F[32 + 4 * k : 36 + 4 * k] = stretches(values, 4)
    return F.reshape(48, 9), deformations(48, seed=9).reshape(48, 9)


@pytest.fixture(scope="module")
def plain_python():
    """Results of all materials in a process without compilation."""
    results = {}
    kind = material("corotated")
    for names in ([name for name in FINITE if name in BY_LAME], BARRIERS):
        F, D = inputs(names[0])
        given = {"materials": names, "lame": [kind.mu, kind.lam], "F": F.tolist(), "D": D.tolist()}
        run = subprocess.run(
            [sys.executable, material_targets.__file__],
            input=json.dumps(given),
            env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
        results.update(json.loads(run.stdout))
    return {name: np.array(rows) for name, rows in results.items()}


@pytest.mark.parametrize("name", BY_LAME)
def test_compiled_scalars_agree_with_plain_python(name, plain_python):
    scalars = material_targets.by_scalars(material(name), *inputs(name))
    np.testing.assert_allclose(scalars, plain_python[name], rtol=1e-10, atol=1e-10 * YOUNG)


@pytest.mark.parametrize("name", [*HAND_WRITTEN, "gent", "ogden", "muscle"])
def test_packs_of_float64_agree_with_compiled_scalars(name):
    packs = material_targets.by_packs(material(name), *inputs(name), np.float64)
    scalars = material_targets.by_scalars(material(name), *inputs(name))
    np.testing.assert_allclose(packs, scalars, rtol=1e-10, atol=1e-10 * YOUNG)


@pytest.mark.parametrize("name", HAND_WRITTEN)
def test_packs_of_float32_agree_to_rounding(name):
    packs = material_targets.by_packs(material(name), *inputs(name), np.float32)
    scalars = material_targets.by_scalars(material(name), *inputs(name))
    assert packs.dtype == np.float32
    np.testing.assert_allclose(packs, scalars, rtol=2e-4, atol=2e-4 * YOUNG)


@pytest.mark.parametrize("name", [name for name, kind in MATERIALS.items() if hasattr(kind, "psi")])
def test_responses_in_packs_of_float32_agree_with_plain_python(name):
    """The functions that PBNG needs of materials with only ψ."""
    kind = material(name)
    F = np.array([f for f in deformations(64) if np.linalg.det(f) > 0.3])[:32].reshape(32, 9)
    g = deformations(32, seed=9)[:, 0]
    packs = material_targets.responses_by_packs(kind, F, g, np.float32)
    for f, direction, row in zip(F.tolist(), g.tolist(), packs, strict=True):
        traction, block, _ = vertex_response(kind, tuple(f), tuple(direction))
        expected = np.array([psi(kind, tuple(f)), *traction, *block])
        np.testing.assert_allclose(row, expected, rtol=1e-3, atol=1e-3 * np.abs(expected).max())


CUDA = """
import json, sys
import numpy as np
if not hasattr(np, "row_stack"):
    np.row_stack = np.vstack  # numba-cuda asks for it, NumPy 2.5 has it no more
from numba import cuda
from problems import material
from supple.materials import psi, stress

@cuda.jit
def evaluate(kind, F, out):
    i = cuda.grid(1)
    if i < F.shape[0]:
        f = (F[i, 0], F[i, 1], F[i, 2], F[i, 3], F[i, 4], F[i, 5], F[i, 6], F[i, 7], F[i, 8])
        out[i, 0] = psi(kind, f)
        P = stress(kind, f)
        for j in range(9):
            out[i, 1 + j] = P[j]

given = json.load(sys.stdin)
results = {}
for name, F in given.items():
    out = np.zeros((len(F), 10))
    evaluate[1, 64](material(name), np.array(F), out)
    results[name] = out.tolist()
json.dump(results, sys.stdout)
"""


def cuda_environment():
    """Environment of a process with CUDA kernels: a GPU, or else Numba's simulator."""
    check = "from numba import cuda; import sys; sys.exit(0 if cuda.is_available() else 3)"
    environment = {
        **os.environ,
        "PYTHONPATH": f"{Path(__file__).parents[1]}:{os.environ.get('PYTHONPATH', '')}",
    }
    for simulator in ({}, {"NUMBA_ENABLE_CUDASIM": "1"}):
        process = subprocess.run([sys.executable, "-c", check], env={**environment, **simulator}, check=False)
        if process.returncode == 0:
            return {**environment, **simulator}
    pytest.skip("neither a GPU nor Numba's CUDA simulator is here")


def test_cuda_threads_agree_with_compiled_scalars():
    """Eight deformations of each material in one process, since the simulator must be chosen at its start."""
    environment = cuda_environment()
    given = {
        name: inputs(name)[0][12:20].tolist()
        for name in (*HAND_WRITTEN, "gent", "ogden", "holzapfel_gasser_ogden")
    }
    run = subprocess.run(
        [sys.executable, "-c", CUDA],
        input=json.dumps(given),
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    for name, rows in json.loads(run.stdout).items():
        F, D = inputs(name)
        scalars = material_targets.by_scalars(material(name), F[12:20], D[12:20])
        np.testing.assert_allclose(rows, scalars[:, :10], rtol=1e-10, atol=1e-10 * YOUNG)
