"""Pins, their motions, and connectors: attachments, springs and cables."""
