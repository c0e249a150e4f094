"""Building blocks of Newton's method: linear systems, rotation paths, line searches and error estimates."""
