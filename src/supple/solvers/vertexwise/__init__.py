"""Building blocks of vertex-wise sweeps: vertex updates, tied groups and the cloth hierarchy."""
