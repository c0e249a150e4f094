"""The picture of the live page in docs/live.md: python benchmarks/live_picture.py

Serves the twisted block to a Chromium without a window, lets it come to rest, grabs its top and lifts it step
by step, and writes what the browser shows to docs/images/live.png. Needs playwright and Chromium.
"""

from __future__ import annotations

import argparse
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import Page as Tab
from playwright.sync_api import sync_playwright

from supple import load_scene
from supple.live.page import Page
from supple.live.server import free_port
from supple.live.session import Session

ROOT = Path(__file__).resolve().parents[1]
SCENE = ROOT / "scenes" / "twist.toml"
PICTURE = ROOT / "docs" / "images" / "live.png"

LOCAL = "127.0.0.1"

SIZE = {"width": 1280, "height": 800}
FLAGS = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
"""Chromium draws without a graphics card."""

PATIENCE = 300.0
"""Timeout [s] on a busy machine."""

LIFTS = (0.05, 0.1, 0.15, 0.2, 0.25)
"""Successive heights [m] of the lifted top."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, default=PICTURE, help="where the picture goes")
    parser.add_argument("--dark", action="store_true", help="the dark theme")
    options = parser.parse_args()
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        raise SystemExit("Chromium is needed: apt-get install chromium")
    session = Session(load_scene(SCENE))
    page = Page(session, LOCAL, free_port(LOCAL, 8400), ROOT)
    session.start()
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=FLAGS)
        tab = browser.new_page(viewport=SIZE)  # type: ignore[arg-type]
        tab.goto(f"http://{LOCAL}:{page.server.get_port()}/{page.query}")
        tab.get_by_role("button", name="Play").wait_for(timeout=1e3 * PATIENCE)
        if options.dark:
            tab.get_by_text("Dark", exact=True).click()
        lift_the_top(session, tab)
        clear_notifications(tab)
        tab.screenshot(path=options.output)
        browser.close()
    page.close()
    session.close()
    print(f"wrote {options.output}")


def lift_the_top(session: Session, tab: Tab) -> None:
    """Play until all forces balance; then hold the middle of the top, and lift it in steps."""
    session.play()
    wait_until_balanced(session, tab)
    rest = session.snapshot.model.rest
    top = int(np.argmin(np.linalg.norm(rest - [0.5, 1.0, 0.5], axis=1)))
    session.grab(top, radius=0.06)
    for height in LIFTS:
        executed = session.drag(np.array([0.0, height, 0.0]))
        wait(tab, lambda executed=executed: session.snapshot.executed >= executed)  # type: ignore[misc]
        wait_until_balanced(session, tab)


def wait_until_balanced(session: Session, tab: Tab) -> None:
    wait(tab, lambda: session.snapshot.status == "In balance.")


def clear_notifications(tab: Tab) -> None:
    """Close notifications, such as that of a missing graphics card, and let the browser draw."""
    for button in tab.locator(".mantine-Notification-closeButton").all():
        button.click()
    tab.get_by_text("In balance.").wait_for(timeout=1e3 * PATIENCE)
    tab.wait_for_timeout(5000)


def wait(tab: Tab, condition: Callable[[], Any]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise SystemExit("the page did not come to rest in time")
        tab.wait_for_timeout(100)


if __name__ == "__main__":
    main()
