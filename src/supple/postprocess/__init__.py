"""Quantities computed from solutions: stresses, energies, forces and lowest modes."""
