"""Tables of a scene file, one module per subject; the complete scene is in `scene.schema`.

Field names, defaults and descriptions define the file format.
"""
