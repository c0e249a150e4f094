"""Readers of data sets: quantities, training pairs, data cards and report pages."""
