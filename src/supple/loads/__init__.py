"""Public names of loads, which `Scene.add_force`, `add_pressure`, `add_cavity` and `add_wind` return.

The code is in `scene/loads/`.
"""

from supple.scene.loads.cavities import Cavity
from supple.scene.loads.follower_tractions import FollowingTraction
from supple.scene.loads.forces import Inflation, Load, Wind
from supple.scene.loads.ramps import Ramp

__all__ = ["Cavity", "FollowingTraction", "Inflation", "Load", "Ramp", "Wind"]
