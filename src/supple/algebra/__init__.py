"""Small dense linear algebra on tuples, shared by all materials, terms and solvers."""
