"""Tables of scene files, one module per subject; `scene.files.scene_table` joins them to the complete table.

Field names, defaults and descriptions define the file format.
"""
