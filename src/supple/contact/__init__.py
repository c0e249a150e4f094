"""Contact methods: weak and barrier contact, thin obstacles. A problem owns what is in `state`."""

import supple.problem  # noqa: F401 - a problem owns its contact state; this is the order of their imports
