"""The device layer: SIMD packs, compilation for a target, threads. Nothing here knows any physics."""

from supple.kernels.access import RECORD, gather, load, scatter, store
from supple.kernels.compile import cache_directory, compilation, generic, kernel, like, physics
from supple.kernels.pack import PackType, all_lanes, lane_max, lane_sum, lanes_of, select
from supple.kernels.threads import (
    counters_for,
    default_threads,
    finish_chunk,
    run,
    take_chunk,
    wait_for_phase,
)

__all__ = [
    "RECORD",
    "PackType",
    "all_lanes",
    "cache_directory",
    "compilation",
    "counters_for",
    "default_threads",
    "finish_chunk",
    "gather",
    "generic",
    "kernel",
    "lane_max",
    "lane_sum",
    "lanes_of",
    "like",
    "load",
    "physics",
    "run",
    "scatter",
    "select",
    "store",
    "take_chunk",
    "wait_for_phase",
]
