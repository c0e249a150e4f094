"""Public names of motions of pins and obstacles; a sum of motions applies one after the other.

The code is in `scene/constraints/motions.py`.
"""

from supple.scene.constraints.motions import Keyframes, Motion, Rotate, Scale, Translate, Twist

__all__ = ["Keyframes", "Motion", "Rotate", "Scale", "Translate", "Twist"]
