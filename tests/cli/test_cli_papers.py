"""supple papers."""

from dataclasses import replace
from pathlib import Path

from cli_scenes import supple, supple_json

from supple_papers.registry import rows


def test_all_figures_and_tables_are_listed():
    table_rows = supple_json("papers")["rows"]
    assert [row["key"] for row in table_rows] == list(rows())
    assert {row["state"] for row in table_rows} == {"not measured", "illustration"}
    outcome = supple("papers")
    assert outcome.exit_code == 0
    assert "pbng-fig7" in outcome.stdout
    assert "gpbd-table5" in outcome.stdout


def test_single_figure_is_measured_and_its_page_written():
    output = supple_json("papers", "pbcm-fig2", "pbng-fig4", "--output", "out")
    assert output["rows"]["pbcm-fig2"].startswith("agrees")
    assert output["rows"]["pbng-fig4"] == "illustration"
    assert output["rows"]["pbcm-fig2"] in Path(output["page"]).read_text(encoding="utf-8")
    written = Path("out/pbcm-fig2.json").read_text(encoding="utf-8")
    supple_json("papers", "pbcm-fig2", "--output", "out")
    assert Path("out/pbcm-fig2.json").read_text(encoding="utf-8") == written
    states = {row["key"]: row["state"] for row in supple_json("papers", "--output", "out")["rows"]}
    assert states["pbcm-fig2"] == "agrees"


def test_impossible_figure_is_reported_with_its_reason(monkeypatch):
    known = rows()
    key = "pxpbd-fig11"
    changed = replace(known[key], state="impossible", shows="", needs="a mesh that is not public")
    monkeypatch.setattr("supple_papers.registry.rows", lambda: known | {key: changed})
    output = supple_json("papers", key, "--output", "out")["rows"]
    assert output[key] == "impossible: it needs a mesh that is not public"


def test_rows_without_their_files_are_skipped(monkeypatch, tmp_path):
    """Fabrics are not in the package: the remaining rows are measured, and the page is written."""
    monkeypatch.delenv("SUPPLE_DATA", raising=False)
    arguments = ("papers", "gpbd-fig4", "pbcm-fig2", "--output", "out")
    result = supple(*arguments)
    message = " ".join((result.stdout + result.stderr).split())
    assert result.exit_code == 1
    assert "gpbd-fig4 is skipped: there is no fabric 'satin1' because SUPPLE_DATA is not set" in message
    assert "1 of 2 rows skipped" in message
    assert "supple papers gpbd-fig4" in message
    assert "pbcm-fig2: agrees" in message
    assert Path("out/README.md").is_file()
    monkeypatch.setenv("SUPPLE_DATA", str(tmp_path))
    output = supple_json(*arguments, exit_code=1)
    assert output["skipped"] == ["gpbd-fig4"]
    assert output["rows"]["gpbd-fig4"].startswith("skipped: there is no fabric 'satin1' in the folder")
    assert output["rows"]["pbcm-fig2"].startswith("agrees")


def test_damaged_fabric_is_reported(monkeypatch, tmp_path):
    monkeypatch.setenv("SUPPLE_DATA", str(tmp_path))
    (tmp_path / "satin1.json").write_text("{", encoding="utf-8")
    result = supple("papers", "gpbd-fig4", "--output", "out")
    assert result.exit_code == 2
    assert "cannot be read as JSON" in result.stderr


def test_missing_devices_are_refused():
    result = supple("papers", "pbcm-fig2", "--device", "tpu")
    assert result.exit_code == 2
    assert "device must be" in result.stderr


def test_unknown_names_are_refused():
    result = supple("papers", "pbng-fig77")
    assert result.exit_code == 2
    assert "there is no figure or table 'pbng-fig77'" in result.stderr
