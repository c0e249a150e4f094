"""Interactive simulation: a session that deforms a scene in real time, and its web page."""

from supple.live.movable_pins import Placement
from supple.live.session import Session
from supple.live.settings import Settings, file_settings
from supple.live.snapshot import Notice, Snapshot

__all__ = ["Notice", "Placement", "Session", "Settings", "Snapshot", "file_settings"]
