"""Obstacles: signed distances, contact planes, Coulomb friction and rigid bodies."""
