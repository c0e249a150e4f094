"""Contact forces between bodies in data sets."""

import numpy as np
import pytest
from dataset_scenes import solved

import supple

BLOCKS = """
[contact]
method = "METHOD"
friction = FRICTION

[[solid]]
name = "low"
mesh = { block = { cells = [2, 2, 2] } }
material = { corotated = { young = 1e5, poisson = 0.3 } }
density = 100

[[solid]]
name = "high"
mesh = { block = { cells = [2, 2, 2], size = [0.5, 0.5, 0.5], origin = [0.23, 1.02, 0.27] } }
material = { corotated = { young = 1e5, poisson = 0.3 } }
density = 100

[[pin]]
solid = "low"
name = "base"
where = { side = "y-" }

[[pin]]
solid = "high"
name = "grip"
where = { side = "y+" }
motion = [{ translate = { offset = [0, -0.1, 0] } }]
"""
VARY = [
    {
        "path": "pin.grip.motion.translate.offset",
        "name": "offset",
        "range": [[-0.03, -0.1, -0.03], [0.03, -0.06, 0.03]],
    }
]
STORED = ["positions", "contact", "reactions", "forces", "internal_force", "external_force"]


@pytest.mark.parametrize("friction", [0.0, 0.4])
@pytest.mark.parametrize("method", ["weak", "barrier"])
def test_stored_contact_forces_balance_the_bodies(tmp_path, method, friction):
    """Balance holds at each vertex, with the contacts at the end of the solve."""
    path = tmp_path / "blocks.toml"
    path.write_text(BLOCKS.replace("METHOD", method).replace("FRICTION", f"{friction}"))
    options = {"vary": VARY, "scene": str(path), "store": {"quantities": STORED}}
    store = solved(
        tmp_path, count=2, shard=2, solve={"tolerance": 1e-6, "position_tolerance": False}, **options
    )
    data = supple.data.open(store.path)
    assert list(data.ids) == [0, 1]
    for sample in (0, 1):
        contact, reactions = data["contact"][sample], data["reactions"][sample][:, :3]
        scale = np.abs(reactions).max()
        assert np.abs(contact).max() > 0.01 * scale
        for body in (0, 1):
            own = data["body"] == body
            outer = (contact + data["external_force"][sample])[own].sum(axis=0)
            np.testing.assert_allclose(outer + reactions[body], 0, atol=1e-5 * scale)
        names = "internal_force", "external_force", "forces"
        rest = sum(data[name][sample] for name in names)
        np.testing.assert_allclose(rest, 0, atol=1e-5 * scale)
        assert (np.abs(contact[:, [0, 2]].sum(axis=0)) < 1e-9 * scale).all()
