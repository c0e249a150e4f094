"""Narrow phase: contact pairs with points, directions, gaps and areas."""
