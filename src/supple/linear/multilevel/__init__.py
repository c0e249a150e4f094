"""Multilevel preconditioner: aggregates, rigid modes, smoothers and V-cycle."""
