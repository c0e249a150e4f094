"""Motions of pins and obstacles; a sum of motions applies one after the other."""

from supple.scene.constraints.motions import Keyframes, Motion, Rotate, Scale, Translate, Twist

__all__ = ["Keyframes", "Motion", "Rotate", "Scale", "Translate", "Twist"]
