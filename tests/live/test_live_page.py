"""The live page in a real Chromium."""

import io
import shutil
import threading
import time

import numpy as np
import pytest
from live_scenes import scene_file
from PIL import Image

from supple.live.page import Page
from supple.live.server import free_port
from supple.live.session import Session

LOCAL = "127.0.0.1"

pytest.importorskip("viser", reason="the live page needs viser: pip install 'supple[view]'")
playwright = pytest.importorskip("playwright.sync_api", reason="browser tests need playwright")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="browser tests need Chromium: apt-get install chromium"
)

FLAGS = [
    "--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--disable-quic",
    "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
VIEW = {"x": 0, "y": 150, "width": 650, "height": 550}
"""Region of the body in the picture, left of the panel and below notifications."""

TYPING_DELAY = 90


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    """A session and its page; tests reset their changes."""
    folder = tmp_path_factory.mktemp("live")
    session = Session(scene_file(folder))
    page = Page(session, LOCAL, free_port(LOCAL, 8300), folder)
    page.color_by("plain")
    session.start()
    yield session, f"http://{LOCAL}:{page.server.get_port()}/{page.query}", folder
    page.close()
    session.close()


@pytest.fixture(scope="module")
def tab(browser, live):
    return opened(browser, live[1])


def opened(browser, url):
    tab = browser.new_page(viewport={"width": 1000, "height": 720})
    tab.set_default_timeout(TYPING_DELAY * 1000)
    tab.goto(url)
    tab.get_by_role("button", name="Play").wait_for(timeout=TYPING_DELAY * 1000)
    tab.get_by_text("Paused.").wait_for(timeout=TYPING_DELAY * 1000)
    until(lambda: covered(tab) > 0.02, "the body is drawn")
    return tab


def until(condition, what):
    end = time.monotonic() + TYPING_DELAY
    while not condition():
        assert time.monotonic() < end, f"never happened: {what}"
        time.sleep(0.1)


def pixels(tab):
    return np.asarray(Image.open(io.BytesIO(tab.screenshot(clip=VIEW))).convert("RGB"), int)


def covered(tab):
    """Part of the view with the color of the body, clearly bluer than the neutral background."""
    image = pixels(tab)
    return float(np.mean(image[..., 2] - image[..., 0] > 20))


def control(tab, label):
    """The text field with a label."""
    return tab.locator("label", has_text=label).locator("xpath=../../..").locator("input").last


def test_canvas_draws_the_body(tab):
    assert tab.title() == "Live block"
    image = pixels(tab)
    assert 0.05 < covered(tab) < 0.8
    assert len(np.unique(image.reshape(-1, 3), axis=0)) > 100, "shaded, not flat"


def test_play_moves_the_body_and_reset_restores_it(tab, live):
    session, before = live[0], pixels(tab)
    tab.get_by_role("button", name="Play").click()
    tab.get_by_text("In balance.").wait_for(timeout=TYPING_DELAY * 1000)
    until(lambda: np.abs(pixels(tab) - before).max(axis=2).mean() > 2, "the picture changes")
    tab.locator(".uplot canvas").wait_for(timeout=TYPING_DELAY * 1000)
    tab.get_by_role("button", name="Reset").click()
    until(lambda: session.snapshot.updates == 0, "the session is reset")
    until(lambda: np.abs(pixels(tab) - before).max(axis=2).mean() < 1, "the picture is as before")


def test_slider_changes_the_result(tab, live):
    session = live[0]
    tab.get_by_role("button", name="Play").click()
    until(lambda: session.snapshot.status == "In balance.", "the session rests")
    before = session.snapshot.shapes[0].positions
    slider = control(tab, "Stretch y")
    slider.fill("2")
    slider.press("Enter")
    until(lambda: session.snapshot.handles[0].stretch[1] == 2, "the pin is stretched")
    until(lambda: np.abs(session.snapshot.shapes[0].positions - before).max() > 0.3, "the body follows")
    pinned = session.snapshot.model.pinned[:25]
    assert np.ptp(session.snapshot.shapes[0].positions[pinned, 1]) == pytest.approx(2.0, abs=1e-5)
    tab.get_by_role("button", name="Reset").click()
    until(lambda: session.snapshot.handles[0].stretch[1] == 1, "the session is reset")


def test_dragging_moves_the_surface(tab, live):
    session = live[0]
    tab.get_by_role("button", name="Play").click()
    until(lambda: session.snapshot.status == "In balance.", "the session rests")
    before = session.snapshot.shapes[0].positions
    image = pixels(tab)
    rows, columns = np.nonzero(image[..., 2] - image[..., 0] > 20)
    x, y = VIEW["x"] + float(np.median(columns)), VIEW["y"] + float(np.quantile(rows, 0.3))
    tab.mouse.move(x, y)
    tab.mouse.down()
    tab.mouse.move(x, y - 20, steps=3)
    tab.mouse.move(x, y - 60, steps=5)
    until(lambda: len(session.snapshot.grabbed) > 0, "something is held")
    grabbed = session.snapshot.grabbed
    until(lambda: lifted(session, grabbed, before) > 0.03, "what is held rises with the mouse")
    tab.mouse.up()
    until(lambda: not len(session.snapshot.grabbed), "it is let go")
    until(lambda: abs(lifted(session, grabbed, before)) < 0.01, "the body springs back")
    tab.get_by_role("button", name="Reset").click()


def lifted(session, vertices, before):
    """How far vertices have risen, on average."""
    return float((session.snapshot.shapes[0].positions - before)[vertices, 1].mean())


def test_bad_number_shows_a_message_and_changes_nothing(tab, live):
    session, settings = live[0], live[0].snapshot.settings
    field = control(tab, "E [Pa]")
    field.fill("soft")
    tab.get_by_text("must be a number such as 1e5 or 0.01, got 'soft'").first.wait_for(
        timeout=TYPING_DELAY * 1000
    )
    assert session.snapshot.settings == settings
    field.fill("-5")
    tab.get_by_text("young must be positive").first.wait_for(timeout=TYPING_DELAY * 1000)
    field.fill("2e4")
    until(lambda: session.snapshot.settings.materials[0].young == pytest.approx(2e4), "a good one counts")
    until(lambda: not tab.get_by_text("young must be positive").count(), "the message goes away")
    assert field.input_value() == "2e4"


def test_message_disappears_with_its_option(tab, live):
    """The session is busy meanwhile and sends no update."""
    free = threading.Event()
    live[0].ask(lambda simulation: free.wait(3 * TYPING_DELAY))
    field = tab.locator("label", has_text="Options").first.locator("xpath=../../..").locator("input").last
    field.fill("omego=1")
    tab.get_by_text("has no option 'omego'").first.wait_for(timeout=TYPING_DELAY * 1000)
    field.fill("")
    until(lambda: not tab.get_by_text("has no option 'omego'").count(), "the message goes away")
    free.set()


def test_scroll_bar_hides_no_button(tab):
    button = tab.get_by_role("button", name="Reset").bounding_box()
    bars = tab.locator(".mantine-ScrollArea-scrollbar[data-orientation=vertical]")
    edges = [box["x"] for box in (bar.bounding_box() for bar in bars.all()) if box]
    assert edges
    assert button["x"] + button["width"] <= min(edges)


def test_scene_and_picture_are_saved(tab, live):
    folder = live[2]
    tab.get_by_text("Save", exact=True).click()
    tab.get_by_role("button", name="Scene file").click()
    until(lambda: list(folder.glob("*_live_*.toml")), "there is a scene file")
    tab.get_by_role("button", name="Picture").click()
    until(lambda: list(folder.glob("*_live_*.png")), "there is a picture")


def test_two_tabs_show_the_same_scene(browser, tab, live):
    session, url, _ = live
    second = opened(browser, url)
    control(second, "Time step").fill("0.125")
    until(lambda: session.snapshot.settings.dt == 0.125, "the second tab is obeyed")
    until(lambda: control(tab, "Time step").input_value() == "0.125", "the first tab shows it")
    second.close()
    tab.get_by_role("button", name="Step").click()
    until(lambda: session.snapshot.updates > 0, "the session goes on")
    tab.get_by_role("button", name="Reset").click()


def test_page_answers_during_a_long_update(tab, live):
    session, free = live[0], threading.Event()
    session.ask(lambda simulation: free.wait(TYPING_DELAY))
    field = control(tab, "E [Pa]")
    field.fill("worse")
    tab.get_by_text("got 'worse'").first.wait_for(timeout=5000)
    free.set()
