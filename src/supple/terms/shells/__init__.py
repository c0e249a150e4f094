"""Energies of cloth: membranes, bending hinges and creases."""
