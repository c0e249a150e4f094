"""Discrete potential of one step: constant arrays, states, loads, and the device that runs the kernels."""

from supple.model.dynamic_term import DynamicTerm
from supple.problem.device import Cpu, Device
from supple.problem.diagnostics import norm
from supple.problem.force_kernels import net_force, sum_forces
from supple.problem.loads import pad_vectors
from supple.problem.problem import Problem, check_precision
from supple.problem.residual import Balance, Balances
from supple.problem.vertex_kernels import begin_step

__all__ = [
    "Balance",
    "Balances",
    "Cpu",
    "Device",
    "DynamicTerm",
    "Problem",
    "begin_step",
    "check_precision",
    "net_force",
    "norm",
    "pad_vectors",
    "sum_forces",
]
