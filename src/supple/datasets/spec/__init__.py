"""Specifications of data sets: sampled parameters and the scenes they produce."""
