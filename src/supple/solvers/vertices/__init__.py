"""What sweeps over vertices are made of: moves, links of what is tied together, layers of cloth."""
