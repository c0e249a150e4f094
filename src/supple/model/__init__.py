"""The discrete model: rest geometry, terms, Dirichlet conditions, and states."""
