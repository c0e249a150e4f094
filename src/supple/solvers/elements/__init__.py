"""What the element-wise methods are made of: corners of elements, projections of terms, sweeps, steps of
(pseudo-)time."""
