"""Loads: gravity, wind, tractions, cavities, ramps and values that vary in time."""
