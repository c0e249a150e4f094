"""Solution procedures: iteration to a tolerance, load stepping, time stepping and reports."""
