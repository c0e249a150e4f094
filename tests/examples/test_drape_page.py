"""The table of docs/drape.md has the parameters of the cloth of benchmarks/drape.py."""

import sys
from pathlib import Path

import numpy as np
import pytest

import supple

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))
drape = pytest.importorskip("drape")


def test_fabrics_of_the_page_equal_those_of_the_benchmark():
    lines = (ROOT / "docs" / "drape.md").read_text(encoding="utf-8").splitlines()
    head = next(k for k, line in enumerate(lines) if "weft, warp, shear [Pa]" in line)
    columns = [cell.strip() for cell in lines[head].strip("|").split("|")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[head + 2 :][:6]]
    fabrics = {row[0]: dict(zip(columns, row, strict=True)) for row in rows}
    assert fabrics.keys() == drape.FABRICS.keys()
    for name, fabric in drape.FABRICS.items():
        weft, warp, shear = map(float, fabrics[name]["weft, warp, shear [Pa]"].split(","))
        typed = supple.materials.WovenStVK(
            young_weft=weft,
            young_warp=warp,
            shear_modulus=shear,
            poisson_weft=0.2,
            poisson_warp=0.2 * warp / weft,
        )
        membrane = fabric.membrane()
        for modulus in ("along", "across", "coupling", "shear_modulus"):
            np.testing.assert_allclose(getattr(typed, modulus), getattr(membrane, modulus), rtol=1e-3)
        assert float(fabrics[name]["thickness [mm]"]) == pytest.approx(1e3 * fabric.thickness)
        assert shear * fabric.thickness == pytest.approx(fabric.shear, rel=1e-3), "force per width [N/m]"
