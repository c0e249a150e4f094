"""supple dataset: output and files of its commands."""

import json
from pathlib import Path

import pytest
from cli_scenes import SAG, supple

SPEC = """
scene = "bar.toml"
count = 6
design = "latin_hypercube"

[[vary]]
path = "gravity.y"
range = [-12, 0]

[store]
shard_size = 3
"""


@pytest.fixture(autouse=True)
def _files(tmp_path):
    (tmp_path / "bar.toml").write_text(SAG, encoding="utf-8")
    (tmp_path / "spec.toml").write_text(SPEC, encoding="utf-8")


def test_data_set_from_spec_to_page():
    half = supple("dataset", "run", "spec.toml", "--shards", "1/2", "--workers", "1", "--json")
    assert half.exit_code == 0, half.stderr
    assert json.loads(half.stdout)["outcomes"] == {"missing": 3, "converged": 3}
    rest = supple("dataset", "spec.toml")
    assert rest.exit_code == 0, rest.stderr
    assert "6 samples: 6 converged" in rest.stdout
    status = json.loads(supple("dataset", "status", "results/spec.zarr", "--json").stdout)
    assert status["left"] == []
    assert status["good"] == 6
    verified = supple("dataset", "verify", "results/spec.zarr", "--samples", "1")
    assert verified.exit_code == 0
    assert "all checksums match; 1 sample solved again" in verified.stdout
    exported = supple("dataset", "export", "results/spec.zarr", "--format", "webdataset")
    assert list(Path(exported.stdout.strip()).glob("*.tar"))
    path = Path("results/spec.zarr/samples/positions/c/0/0/0")
    content = bytearray(path.read_bytes())
    content[5] ^= 1
    path.write_bytes(content)
    damaged = supple("dataset", "verify", "results/spec.zarr", "--discard", "--json")
    assert damaged.exit_code == 1
    assert json.loads(damaged.stdout)["damaged"] == [0]
    assert supple("dataset", "resume", "results/spec.zarr", "--quiet").exit_code == 0
    assert supple("dataset", "verify", "results/spec.zarr", "--samples", "0").exit_code == 0


def test_spec_with_a_function_needs_permission():
    Path("sampling.py").write_text("def design(count, rng):\n    return {'gravity.y': -rng.random(count)}\n")
    function = 'design = "function"\nfunction = "sampling:design"'
    text = SPEC.replace('design = "latin_hypercube"', function).replace("range = [-12, 0]\n", "")
    Path("spec.toml").write_text(text.replace("count = 6", "count = 2"))
    refused = supple("dataset", "run", "spec.toml", "--workers", "1")
    assert refused.exit_code == 2
    message = " ".join(refused.stderr.split())
    assert "spec.toml: function: this spec is a program: it imports and runs 'sampling:design'" in message
    assert not Path("results").exists()
    allowed = supple("dataset", "run", "spec.toml", "--workers", "1", "--allow-code")
    assert allowed.exit_code == 0, allowed.stderr
    Path("sampling.py").write_text("raise SystemExit(3)")
    assert supple("dataset", "verify", "results/spec.zarr", "--samples", "1").exit_code == 0
    assert supple("dataset", "resume", "results/spec.zarr").exit_code == 0


def test_mistakes_are_reported():
    Path("spec.toml").write_text(SPEC.replace("gravity.y", "gravity.w").replace("count = 6", "count = 0"))
    wrong = supple("dataset", "run", "spec.toml")
    assert wrong.exit_code == 2
    assert "spec.toml: count: got 0; it should be at least 1" in wrong.stderr
    Path("spec.toml").write_text(SPEC.replace("gravity.y", "gravity.w"))
    assert "gravity has no 'w'" in supple("dataset", "run", "spec.toml").stderr
    assert "there is no such spec" in supple("dataset", "run", "nothing.toml").stderr
    assert "has no zarr.json" in supple("dataset", "status", ".").stderr
    assert "i from 0 to N-1" in supple("dataset", "run", "spec.toml", "--shards", "2/2").stderr
