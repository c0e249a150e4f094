"""Small linear algebra on tuples, shared by every material, term and solver."""
