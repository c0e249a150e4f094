"""Building blocks of sweeps over vertices: bounded moves, groups of tied vertices, coarse layers of cloth."""
