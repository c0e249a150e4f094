"""Continuous collision detection: times of impact, bounded advances, and intersections."""
