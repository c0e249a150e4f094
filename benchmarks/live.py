"""Update rate of the live page: python benchmarks/live.py

Serves the twisted block of 32,768 vertices with 5 sweeps per update to a client in another process, which
connects as a browser does, receives everything and counts the surfaces. The block never rests meanwhile. The
results and the machine go to benchmarks/results/live.json and docs/live.md. They mean little while other
programs run; `load` tells how many did, on average over the minute before.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from figures_in_docs import table, write

from supple import Keyframes, load_scene
from supple.io.machine import machine, versions
from supple.live.page import Page
from supple.live.server import LOCAL, free_port
from supple.live.session import Session
from supple.live.settings import Settings, file_settings
from supple.scene import SceneFile

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "live.json"
SCENE = ROOT / "scenes" / "twist.toml"

TARGET_RATE = 10
"""Updates per second."""

CAMERA = {
    "type": "ViewerCameraMessage",
    "wxyz": (1.0, 0.0, 0.0, 0.0),
    "position": (0.0, 0.0, 5.0),
    "fov": 0.5,
    "near": 0.01,
    "far": 100.0,
    "image_height": 900,
    "image_width": 1400,
    "look_at": (0.0, 0.0, 0.0),
    "up_direction": (0.0, 1.0, 0.0),
}
"""First message of a browser, which completes its connection."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=10.0, help="how long each case is watched")
    seconds = parser.parse_args().seconds
    load = os.getloadavg()[0]
    settings = replace(file_settings(load_scene(SCENE)), tolerance=0.0, sweeps=5)
    cases = {
        f"{precision}, {field}": measure(replace(settings, precision=precision), field, seconds)
        for precision in ("float32", "float64")
        for field in ("plain", "displacement", "energy_density")
    }
    for name, entry in cases.items():
        verdict = "met" if entry["received_per_second"] >= TARGET_RATE else "missed"
        print(
            f"{name:28s} {entry['received_per_second']:5.1f} updates/s received "
            f"({TARGET_RATE} wanted: {verdict})"
        )
    results = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "load": load,
        "versions": versions(),
        "scene": SCENE.name,
        "vertices": load_scene(SCENE).scene.bodies[0].mesh.n_vertices,
        "sweeps_per_update": settings.sweeps,
        "cases": cases,
    }
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    title = f"{results['machine']['cores']} cores of an {results['machine']['cpu']}"
    write("docs/live.md", table(title, rows(results)))


def rows(results: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for name, entry in results["cases"].items():
        what = f"{results['vertices']:,} vertices, {results['sweeps_per_update']} sweeps per update, {name}"
        yield what, f"{entry['received_per_second']:.0f} updates per second reach the browser"


def moving_scene() -> SceneFile:
    """The twisted block under an endless oscillation, since unchanged surfaces are not sent."""
    file = load_scene(SCENE)
    times = np.arange(0.0, 1000.0, 0.1)
    for k, pin in enumerate(file.scene.pins):
        motion = Keyframes(pin.motion, times.tolist(), (0.5 + 0.5 * np.sin(times)).tolist())
        file.scene.pins[k] = replace(pin, motion=motion)
    return file


def measure(settings: Settings, field: str, seconds: float) -> dict[str, Any]:
    """Computed updates per second, and those that a client received."""
    session = Session(moving_scene(), settings)
    page = Page(session, LOCAL, free_port(LOCAL, 8200), ROOT)
    page.color_by(field)
    session.start()
    session.play()
    while session.snapshot.updates < 10:  # compiled and under way
        time.sleep(0.1)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        address = f"ws://{LOCAL}:{page.server.get_port()}/{page.query}"
        pool.apply(count_surfaces, (address, 1.0))
        first, began = session.snapshot.updates, time.perf_counter()
        received = pool.apply(count_surfaces, (address, seconds))
        computed = (session.snapshot.updates - first) / (time.perf_counter() - began)
    page.close()
    session.close()
    return {"received_per_second": received / seconds, "computed_per_second": computed}


def count_surfaces(address: str, seconds: float) -> int:
    """Number of surfaces that a client receives after the first one in a given time."""
    import msgspec
    import viser
    import zstandard
    from websockets.sync.client import connect

    count, end = 0, float("inf")
    protocol: Any = f"viser-v{viser.__version__}"
    with connect(address, subprotocols=[protocol], max_size=None, compression=None) as socket:
        socket.send(msgspec.msgpack.encode(CAMERA))
        while time.perf_counter() < end:
            data = socket.recv()
            assert isinstance(data, bytes)
            size = int.from_bytes(data[8:16], "little")
            messages = msgspec.msgpack.decode(zstandard.decompress(data[16 : 16 + size]))["messages"]
            new = sum("vertices" in message.get("updates", {}) for message in messages)
            if new and end == float("inf"):
                end = time.perf_counter() + seconds
            count += new
    return count


if __name__ == "__main__":
    main()
