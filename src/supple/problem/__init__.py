"""Discrete potential of one step: constant arrays, states, loads, and the device that runs the kernels."""

from supple.problem.balance import Balance, Balances
from supple.problem.device import Cpu, Device
from supple.problem.evaluation import net_force, sum_forces
from supple.problem.following import Follower
from supple.problem.loads import padded
from supple.problem.measures import norm
from supple.problem.problem import Problem, check_precision
from supple.problem.records import begin_step

__all__ = [
    "Balance",
    "Balances",
    "Cpu",
    "Device",
    "Follower",
    "Problem",
    "begin_step",
    "check_precision",
    "net_force",
    "norm",
    "padded",
    "sum_forces",
]
