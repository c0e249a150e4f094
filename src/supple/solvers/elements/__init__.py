"""Building blocks of element-wise methods: element data, projections, sweeps, steps in (pseudo-)time."""
