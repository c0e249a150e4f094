"""Tables of scene files, one module per subject; `scene.tables` has the complete table.

Field names, defaults and descriptions define the file format.
"""
