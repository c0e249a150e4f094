"""A results folder, as runs leave it."""

import pytest
from exports import DT, FRAMES, NAMES, SCENE, positions

from supple.io import ResultsFolder, SavedFrame, concatenate_bodies, write_frame
from supple.io.results import REPORT_SCHEMA
from supple.io.saved_bodies import write_skins


@pytest.fixture
def results(tmp_path):
    folder = ResultsFolder(tmp_path / "results")
    folder.create()
    rest = concatenate_bodies(SCENE.bodies)
    for index in range(FRAMES + 1):
        x = positions(index)
        write_frame(folder.path, SavedFrame(x, 0 * x, index, index * DT), rest)
    write_skins(folder.path, SCENE.bodies)
    frames = [{"index": index} for index in range(1, FRAMES + 1)]
    report = {"schema": REPORT_SCHEMA, "scene": {"bodies": NAMES, "dt": DT}, "solver": {}, "frames": frames}
    folder.write_report(report)
    return folder.path
