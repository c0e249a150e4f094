"""Contact response: weak and barrier contact, obstacles, rigid bodies, friction history and reports."""

import supple.problem  # noqa: F401 - a problem owns its contact state; this is the order of their imports
