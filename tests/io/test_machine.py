"""Description of the machine for bug reports."""

import sys
from importlib.metadata import version

import supple
from supple.io.machine import OPTIONAL_PACKAGES


def test_versions_of_all_packages_are_printed(capsys):
    supple.show_versions()
    lines = [line.split(None, 1) for line in capsys.readouterr().out.splitlines()]
    versions = dict(line for line in lines if line[0] != "device")
    for name in ("supple", "numpy", "numba"):
        assert versions[name] == version(name)
    assert {"python", "cpu", "cores", "system"} <= versions.keys()
    assert next(rest for name, rest in lines if name == "device").split() == ["cpu", "available"]


def test_absent_packages_are_left_out(capsys, monkeypatch):
    monkeypatch.setattr(
        sys.modules["supple.io.machine"], "OPTIONAL_PACKAGES", (*OPTIONAL_PACKAGES, "no-such-package")
    )
    supple.show_versions()
    assert "no-such-package" not in capsys.readouterr().out
