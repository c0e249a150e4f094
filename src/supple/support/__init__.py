"""Helpers without physics: argument checks, text, memory limits and input files."""
