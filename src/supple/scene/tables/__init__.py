"""The tables of a scene file, one module for each kind of them; `scene.schema` has the whole.

Field names, defaults and descriptions in them are the format's definition.
"""
