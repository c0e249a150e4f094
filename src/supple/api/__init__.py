"""Calls of the library: equilibria, simulations, steppers, comparisons, and the options that they share."""
