"""Interfaces of energy terms: stencils, constraints, elastic elements and parameters."""
