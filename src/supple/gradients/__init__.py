"""Derivatives of functions of an equilibrium, by the implicit function theorem."""

from supple.gradients.batched_gradients import gradients
from supple.gradients.gradient import Gradient, gradient
from supple.gradients.gradient_report import GradientReport, NoGradientError
from supple.gradients.motion import MotionGradient, motion_gradient

__all__ = [
    "Gradient",
    "GradientReport",
    "MotionGradient",
    "NoGradientError",
    "gradient",
    "gradients",
    "motion_gradient",
]
