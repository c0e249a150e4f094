"""Shapes of obstacles and their motions."""
