"""Stores on disk: arrays, journal, integrity checks and merging."""
