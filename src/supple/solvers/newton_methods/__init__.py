"""Building blocks of Newton steps: systems, line searches, active sets and error estimates."""
