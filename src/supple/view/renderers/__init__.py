"""Rendering with VTK and Matplotlib: surfaces, light, axes and legends."""
