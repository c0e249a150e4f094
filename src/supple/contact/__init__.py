"""Contact response: weak and barrier contact, obstacles, rigid bodies, friction history and reports."""
