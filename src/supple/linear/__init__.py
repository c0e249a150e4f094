"""Linear algebra of Newton's systems: the assembled Hessian, preconditioners and solvers."""
