"""Contact state of a problem: trust region, friction history, obstacle contact and reports."""
