"""What Newton steps are made of: systems, directions, paths along which elements turn, line searches; and
what one step says of a state: its certificate."""
