"""Threads: parallel loops, teams, work items and reductions."""
