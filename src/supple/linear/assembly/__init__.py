"""Assembly of the Hessian: sparsity pattern, element blocks and matrices of stress differentials."""
