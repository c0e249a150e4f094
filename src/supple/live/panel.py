"""Text and figures of the page."""

from __future__ import annotations

from html import escape

import numpy as np

from supple.live.painting import Scale
from supple.live.snapshot import Notice, Shape, Snapshot

DOTS = {True: "#2a9d6f", False: "#8a9099"}
"""Colors of the playing and paused states."""

REAL_TIME = 0.8
"""Simulated seconds per second above which a motion counts as real time."""

SLOW = 5.0
"""Updates per second below which the page shows the time per step."""

NOTICES = {"error": "#c2314b", "warning": "#d97706", "info": "#2a6f97"}


def status(snapshot: Snapshot, notice: Notice | None) -> str:
    """Status HTML: session state, solver figures and last notice."""
    rate = f" · {snapshot.updates_per_second:.0f} per second" if snapshot.updates_per_second else ""
    dot = f'<span style="color:{DOTS[snapshot.playing]}">●</span>'
    lines = [
        f"<b>{dot} {escape(snapshot.status)}</b>",
        f"<span style='opacity:.7'>t = {snapshot.time:.3g} s · {snapshot.updates:,} updates{rate}</span>",
        *_slowness(snapshot),
        *map(_figures, snapshot.shapes),
    ]
    if notice is not None:
        lines.append(
            f'<div role="alert" style="margin-top:.4em;padding:.35em .6em;border-left:3px solid '
            f'{NOTICES[notice.kind]};background:{NOTICES[notice.kind]}1c">{escape(notice.text)}</div>'
        )
    return _padded("<br>".join(lines))


def _figures(shape: Shape) -> str:
    name = f"<b>{escape(shape.label)}</b>"
    if not np.isfinite(shape.imbalance):
        return f"{name} · not started"
    figures = (
        f"{name} · imbalance {shape.imbalance:.1e} · residual {shape.residual:.1e} N · "
        f"{shape.iterations:,} iterations"
    )
    return "<br>".join(
        [figures, *(f"<span style='opacity:.7'>{escape(note)}</span>" for note in shape.notes)]
    )


def _slowness(snapshot: Snapshot) -> list[str]:
    """Line about a motion slower than real time; steps are never skipped."""
    settings, rate = snapshot.settings, snapshot.updates_per_second
    shown = rate * settings.dt
    if settings.quasistatic or not rate or shown > REAL_TIME:
        return []
    line = f"{1 / shown:.2g} times slower than real time"
    if rate < SLOW:
        line += f": a step takes {1 / rate:.2g} s. Fewer sweeps per update are faster, and change the motion."
    return [f"<span style='opacity:.7'>{line}</span>"]


def legend(scale: Scale | None) -> str:
    """HTML of the color bar; empty without a field."""
    if scale is None or scale.limits is None:
        return ""
    label, colours = escape(scale.field.label), ", ".join(scale.field.colours)
    if scale.field.separate:
        return _padded(f"<span style='opacity:.7'>{label}</span>")
    low, high = scale.limits
    return _padded(
        f"<span style='opacity:.7'>{label}</span>"
        f"<div style='height:.7em;border-radius:.2em;background:linear-gradient(to right, {colours})'></div>"
        f"<div style='display:flex;justify-content:space-between'><span>{low:.3g}</span>"
        f"<span>{high:.3g}</span></div>"
    )


def _padded(content: str) -> str:
    return f"<div style='padding:.2em .8em .5em;font-size:.8em;line-height:1.5'>{content}</div>"
