"""Building blocks of element-wise methods: projections, sweeps and pseudo-time."""
