"""Energies of contact between bodies: barrier and friction."""
