"""Web page of a session, served by viser: viewport, controls and status text."""

from __future__ import annotations

import logging
import threading
import time
from contextlib import redirect_stdout
from functools import partial
from html import escape
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np

from supple.live.controls import Controls, PinFolder
from supple.live.gltf_surface import Scale
from supple.live.handles import Grabbing, ObstacleHandles, PinHandles
from supple.live.residual_plot import ResidualPlot
from supple.live.save import save_pictures, save_scene
from supple.live.server import AccessRules, access_rules, guard_server
from supple.live.session import Session
from supple.live.settings import Settings, materials_for
from supple.live.snapshot import Notice, Shape, Snapshot
from supple.live.viewport import UNIFORM_COLOR, Viewport
from supple.view.fields import FIELDS
from supple.view.style import DARK, LIGHT, Theme

STATE_COLORS = {True: "#2a9d6f", False: "#8a9099"}
"""Colors of the playing and paused states."""

MIN_REAL_TIME_SPEED = 0.8
"""Simulated seconds per second above which a motion counts as real time."""

MIN_UPDATE_RATE = 5.0
"""Updates per second below which the page shows the time per step."""

NOTICE_COLORS = {"error": "#c2314b", "warning": "#d97706", "info": "#2a6f97"}


def status(snapshot: Snapshot, notice: Notice | None) -> str:
    """Status HTML: session state, one line per solver, and the last notice."""
    rate = f" · {snapshot.updates_per_second:.0f} per second" if snapshot.updates_per_second else ""
    dot = f'<span style="color:{STATE_COLORS[snapshot.playing]}">●</span>'
    lines = [
        f"<b>{dot} {escape(snapshot.status)}</b>",
        f"<span style='opacity:.7'>t = {snapshot.time:.3g} s · {snapshot.updates:,} updates{rate}</span>",
        *_slowness(snapshot),
        *map(_solver_line, snapshot.shapes),
    ]
    if notice is not None:
        lines.append(
            f'<div role="alert" style="margin-top:.4em;padding:.35em .6em;border-left:3px solid '
            f'{NOTICE_COLORS[notice.kind]};background:{NOTICE_COLORS[notice.kind]}1c">{escape(notice.text)}</div>'
        )
    return _pad("<br>".join(lines))


def _solver_line(shape: Shape) -> str:
    name = f"<b>{escape(shape.label)}</b>"
    if not np.isfinite(shape.relative_residual):
        return f"{name} · not started"
    line = (
        f"{name} · relative residual {shape.relative_residual:.1e} · residual {shape.residual:.1e} N · "
        f"{shape.iterations:,} iterations"
    )
    return "<br>".join([line, *(f"<span style='opacity:.7'>{escape(note)}</span>" for note in shape.notes)])


def _slowness(snapshot: Snapshot) -> list[str]:
    """Line about a motion slower than real time; steps are never skipped."""
    settings, rate = snapshot.settings, snapshot.updates_per_second
    speed = rate * settings.dt
    if settings.quasistatic or not rate or speed > MIN_REAL_TIME_SPEED:
        return []
    line = f"{1 / speed:.2g} times slower than real time"
    if rate < MIN_UPDATE_RATE:
        line += f": a step takes {1 / rate:.2g} s. Fewer sweeps per update are faster, and change the motion."
    return [f"<span style='opacity:.7'>{line}</span>"]


def legend(scale: Scale | None) -> str:
    """HTML of the color bar; empty without a field."""
    if scale is None or scale.limits is None:
        return ""
    label, colors = escape(scale.field.label), ", ".join(scale.field.colors)
    if scale.field.separate:
        return _pad(f"<span style='opacity:.7'>{label}</span>")
    low, high = scale.limits
    return _pad(
        f"<span style='opacity:.7'>{label}</span>"
        f"<div style='height:.7em;border-radius:.2em;background:linear-gradient(to right, {colors})'></div>"
        f"<div style='display:flex;justify-content:space-between'><span>{low:.3g}</span>"
        f"<span>{high:.3g}</span></div>"
    )


def _pad(content: str) -> str:
    return f"<div style='padding:.2em .8em .5em;font-size:.8em;line-height:1.5'>{content}</div>"


log = logging.getLogger("supple")

FRAME_INTERVAL = 1 / 30
"""Minimum time between page updates [s]."""

STATUS_INTERVAL = 0.2
"""Minimum time between updates of status text and plots [s]."""

WELCOME_TEXT = (
    "Drag a body with the left mouse button. Drag the background to rotate the view, or with the "
    "right button to shift it; scroll to zoom."
)


ACTIONS = ("Play", "Pause", "Step", "Reset")
"""Button labels; in lower case, the session methods that they call. Other methods cannot be called by name.
"""


class Page:
    """Page that displays a session in all connected browsers and forwards user actions."""

    def __init__(
        self, session: Session, host: str, port: int, folder: Path, access: AccessRules | None = None
    ) -> None:
        """Start serving a session.

        Args:
            session: The session.
            host: Host name or address to serve at.
            port: Port to serve at.
            folder: Folder for files saved by users.
            access: Access rules; by default those of the host.
        """
        import viser

        self._session, self._folder = session, folder
        self._notice: Notice | None = None
        self._popups: list[Any] = []
        self._status_time = 0.0
        self._stopped = threading.Event()
        self._needs_redraw = threading.Event()
        title = session.file.title
        access = access or access_rules(host)
        self.query = access.query
        """Query of the page address, with the token required for access."""
        with redirect_stdout(StringIO()), guard_server(access, title):  # suppress the greeting of viser
            self.server: Any = viser.ViserServer(host, port, f"supple · {title}", verbose=False)
        first = session.snapshot
        self._size = float(np.ptp(first.model.rest, axis=0).max())
        self._build_panel(first)
        self._viewport = Viewport(self.server, first, self._grabbing.bind)
        self._handles = PinHandles(self.server, session, self._size)
        self._obstacles = ObstacleHandles(self.server, session, self._size)
        self._set_theme()
        self.color_by(self._field.value)
        session.listen(self._tell)
        self.server.on_client_connect(self._greet)
        self.server.on_client_disconnect(self._disconnect)
        self._publisher = threading.Thread(target=self._publish, name="supple page", daemon=True)
        self._publisher.start()

    async def _greet(self, client: Any) -> None:  # async: viser's threads end before its last client does
        self._needs_redraw.set()

    async def _disconnect(self, client: Any) -> None:
        self._session.release(client.client_id)

    def close(self) -> None:
        self._stopped.set()
        self._publisher.join()
        with redirect_stdout(StringIO()):
            self.server.stop()

    def _build_panel(self, first: Snapshot) -> None:
        gui, session = self.server.gui, self._session
        gui.main_panel.dock_right()
        self._status = gui.add_html("")
        with gui.add_folder("Run"):  # its padding keeps the buttons clear of the scroll bar
            buttons = gui.add_button_group("", ACTIONS)
        buttons.on_click(lambda event: self._run(event.target.value))
        self._plot = ResidualPlot(gui, gui.add_folder("Residual", visible=False))
        bodies = session.file.scene.bodies
        names, known = [body.name for body in bodies], materials_for({body.kind for body in bodies})
        refuse = partial(self._tell_text, "error")
        self._controls = Controls(gui, first.settings, names, self._change, refuse, known)
        self._pins = PinFolder(gui, session)
        self._pins.handles.on_update(lambda event: self._show_handles(event.target.value))
        self._grabbing: Grabbing = Grabbing(gui, session, self._size)
        self._build_appearance(gui)
        with gui.add_folder("Save", expand_by_default=False):
            gui.add_button("Scene file").on_click(lambda _: self._save_scene())
            gui.add_button("Picture").on_click(lambda event: self._save_picture(event.client))
        gui.add_markdown(f"<small>{WELCOME_TEXT}</small>")

    def _show_handles(self, visible: bool) -> None:
        self._handles.set_visible(visible)
        self._obstacles.set_visible(visible)

    def _build_appearance(self, gui: Any) -> None:
        with gui.add_folder("Look"):
            self._field = gui.add_dropdown("Color by", (UNIFORM_COLOR, *FIELDS), initial_value="displacement")
            self._legend = gui.add_html("")
            self._dark = gui.add_checkbox("Dark", False)
        self._field.on_update(lambda event: self.color_by(event.target.value))
        self._dark.on_update(lambda _: self._set_theme())

    @property
    def _theme(self) -> Theme:
        return DARK if self._dark.value else LIGHT

    def _set_theme(self) -> None:
        self.server.gui.configure_theme(
            dark_mode=self._dark.value,
            show_logo=False,
            show_share_button=False,
            control_width="large",
            brand_color=(42, 111, 151),
        )
        self._viewport.set_theme(self._theme)
        self._needs_redraw.set()

    def color_by(self, field: str) -> None:
        """Color the bodies by a field of FIELDS, or by PLAIN."""
        self._field.value = field
        self._viewport.color_by(field)
        self._needs_redraw.set()

    def _run(self, action: str) -> None:
        if action not in ACTIONS:  # a browser may send anything
            log.warning("a browser requested %.40r, which is not one of %s", action, ", ".join(ACTIONS))
            return
        self._clear_notice()
        getattr(self._session, action.lower())()
        if action == "Reset":
            self.color_by(self._field.value)

    def _change(self, settings: Settings) -> int:
        self._clear_notice()
        return self._session.change(settings)

    def _save_scene(self) -> None:
        self._session.ask(
            lambda simulation: self._tell_text("info", f"Saved {save_scene(simulation, self._folder)}.")
        )

    def _save_picture(self, client: Any) -> None:
        """Draw the session from a client's viewpoint, without blocking the session's thread."""
        toward = np.array(client.camera.position) - np.array(client.camera.look_at)
        field = "displacement" if self._field.value == UNIFORM_COLOR else self._field.value
        try:
            paths = save_pictures(
                self._session.snapshot, self._session.file, self._folder, field, self._theme.name, toward
            )
            self._tell_text("info", f"Saved {' and '.join(map(str, paths))}.")
        except Exception as error:
            log.exception("a picture could not be saved")
            self._tell_text("error", f"The picture could not be saved: {error}")

    def _tell_text(self, kind: str, text: str) -> None:
        self._tell(Notice(kind, text))

    def _tell(self, notice: Notice) -> None:
        """Show a notice in the panel and as browser pop-ups; repeated notices are ignored."""
        if notice == self._notice:
            return
        self._clear_notice()
        self._notice = notice
        color = {"error": "red", "warning": "orange", "info": "blue"}[notice.kind]
        for client in self.server.get_clients().values():
            popup = client.add_notification(
                notice.kind.capitalize(), notice.text, auto_close_seconds=12, color=color
            )
            self._popups.append(popup)

    def _clear_notice(self) -> None:
        """Remove the last notice from panel and pop-ups."""
        self._notice, popups, self._popups = None, self._popups, []
        for popup in popups:
            popup.remove()
        self._needs_redraw.set()

    def _publish(self) -> None:
        """Update loop of the page; idle without connected browsers."""
        version, pause = -1, 0.0
        while not self._stopped.wait(pause):
            pause = FRAME_INTERVAL
            self._viewport.finish()
            if not self.server.get_clients():
                continue
            began = time.monotonic()
            snapshot, redraw = self._session.wait(version, FRAME_INTERVAL), self._needs_redraw.is_set()
            if snapshot.version > version or redraw:
                self._needs_redraw.clear()
                self._show(snapshot, redraw)
                version, pause = (
                    snapshot.version,
                    max(FRAME_INTERVAL / 2, FRAME_INTERVAL - (time.monotonic() - began)),
                )

    def _show(self, snapshot: Snapshot, redraw: bool) -> None:
        """Show a snapshot; after an error, report it and continue without colors."""
        try:
            with self.server.atomic():
                self._viewport.show(snapshot, self._theme)
                self._handles.follow(snapshot)
                self._obstacles.follow(snapshot)
            if redraw or time.monotonic() - self._status_time > STATUS_INTERVAL or not snapshot.playing:
                self._status_time = time.monotonic()
                self._show_status(snapshot)
        except Exception as error:
            log.exception("the live page failed")
            self._tell_text("error", f"The page could not be updated: {type(error).__name__}: {error}")
            self._stopped.wait(1.0)
            self.color_by(UNIFORM_COLOR)

    def _show_status(self, snapshot: Snapshot) -> None:
        self._status.content = status(snapshot, self._notice)
        self._legend.content = legend(self._viewport.scale)
        self._plot.show(snapshot, self._theme)
        self._controls.follow(snapshot)
        self._pins.follow(snapshot)
