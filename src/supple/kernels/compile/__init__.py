"""Compilation: dispatch of kernels, inlining, disk cache and code hashes."""
