"""Symbolic differentiation of ψ(F): kernels of stresses, Hessians and their bounds from an energy density."""
