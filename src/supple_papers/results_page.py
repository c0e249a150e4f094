"""Results page of all figures and tables: claim, measurement, machine and verdict."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from supple_papers.internals import replacing
from supple_papers.measurements import DEVICES, brief, measurements_path, read_measurements
from supple_papers.registry import Row, rows, titles

WORDS = ("agrees", "differs", "partly")
"""First words of verdicts."""

StoredRows = dict[str, dict[str, Any] | None]
"""Stored measurements by row key; None for rows without any."""

HEAD = """# The five papers, figure by figure

supple implements the methods of five papers on one substrate, with equal meshes, materials, loads and
residuals for all. This page covers every figure and table of these papers: the paper's claim, supple's
measurement, the machine, and a verdict.

| command | result |
|---|---|
| `supple papers` | lists all rows |
| `supple papers pbng-fig7` | measures one row; continues after interruptions |
| `--full` | the paper's sizes instead of small ones |
| `--device cuda` | measures timing rows on a GPU |
| `supple papers --page --output docs/papers` | writes this page from stored measurements |

[Options](options.md) lists the syntax of every method that the papers compare with. The
[audit](audit.md) lists the contents of the papers item by item, and their location in supple.

Conditions on measured figures express each claim, and decide its verdict. Many conditions were written
after the figures were known; `--page` judges all rows, including earlier measurements, by current
conditions. Rows measured on a GPU, some at other sizes, have separate verdicts and counts.

| verdict | meaning |
|---|---|
| *agrees* | all conditions hold |
| *partly* | some conditions hold |
| *differs* | no condition holds |
| *impossible* | the row needs unavailable resources |
| *illustration* | a drawing or a list |

The list below contains every unmet condition, on CPU or GPU, with its reason.
"""


def write_page(folder: Path) -> Path:
    """Write README.md to a folder of stored measurements and return its path."""
    on_cpu, on_gpu = (
        {key: read_measurements(measurements_path(folder, key, at)) for key in rows()} for at in DEVICES
    )
    parts = [HEAD, _counts(on_cpu, on_gpu), _unmet_claims(on_cpu, on_gpu)]
    for paper, title in titles().items():
        parts.append(f"## {paper.upper()}: {title}\n")
        chosen = [row for row in rows().values() if row.paper == paper]
        parts += [_section(row, on_cpu[row.key], on_gpu[row.key]) for row in chosen]
    path = folder / "README.md"
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        temporary.write_text("\n".join(parts), encoding="utf-8")
    return path


def row_status(row: Row, measurements: dict[str, Any] | None) -> str:
    """Return the status of a row: agrees, differs, partly, illustration, impossible, or not measured."""
    if row.state != "shown":
        return row.state
    verdict = (measurements or {}).get("verdict", "")
    return next((word for word in WORDS if verdict.startswith(word)), "not measured")


def _counts(on_cpu: StoredRows, on_gpu: StoredRows) -> str:
    """Table of row counts by status and paper, on the CPU and on the GPU."""
    columns = [*WORDS, "not measured", "impossible", "illustration"]
    head = [*columns, "claims that hold", *(f"{word} on the GPU" for word in WORDS), "claims that hold there"]
    lines = ["| |" + "|".join(head) + "|", "|---|" + "---|" * len(head)]
    for paper in [*titles(), "all"]:
        chosen = {key: row for key, row in rows().items() if paper in ("all", row.paper)}
        name = "all" if paper == "all" else f"[{paper.upper()}](#{_anchor(paper)})"
        cells = [
            _status_cells(chosen, stored, these) for stored, these in ((on_cpu, columns), (on_gpu, [*WORDS]))
        ]
        lines.append(f"|{name}|" + "".join(cells))
    return "\n".join(lines) + "\n"


def _status_cells(chosen: dict[str, Row], stored: StoredRows, columns: list[str]) -> str:
    """Table cells with the number of rows per status, and the number of satisfied claims."""
    counts = Counter(row_status(row, stored[key]) for key, row in chosen.items())
    holds = [claim["holds"] for key in chosen for claim in _claims(stored[key])]
    return f"{_cells(counts, columns)}{sum(holds)} of {len(holds)}|"


def _claims(measurements: dict[str, Any] | None) -> list[dict[str, Any]]:
    return (measurements or {}).get("claims", [])


def _cells(counts: Counter[str], columns: list[str]) -> str:
    return "|".join(str(counts[column]) for column in columns) + "|"


def _anchor(paper: str) -> str:
    """Return the anchor of a paper's heading, as GitHub forms it."""
    heading = f"{paper}: {titles()[paper]}".lower()
    characters = "".join(c for c in heading if c.isalnum() or c in " -")
    return characters.replace(" ", "-")


def _unmet_claims(on_cpu: StoredRows, on_gpu: StoredRows) -> str:
    """List of unsatisfied claims with their reasons."""
    lines = ["What does not hold here, and why:\n"]
    for key, row in rows().items():
        anchor = f"{row.paper}-{row.label}".lower().replace(". ", "-").replace(" ", "-")
        for stored, where in ((on_cpu, ""), (on_gpu, " on the GPU")):
            name = f"[{row.paper.upper()} {row.label}](#{anchor}){where}"
            lost = [claim for claim in _claims(stored[key]) if not claim["holds"]]
            lines += [f"- {name}, {one['says']}: {one['why'] or 'the reason is not known.'}" for one in lost]
    return "\n".join(lines) + "\n" if len(lines) > 1 else ""


def _section(row: Row, measurements: dict[str, Any] | None, on_gpu: dict[str, Any] | None = None) -> str:
    lines = [f"### {row.paper.upper()} {row.label}\n", f"**Paper:** {row.claim}\n"]
    if row.state == "illustration":
        lines.append("**Nothing to measure:** a drawing or a list.\n")
    elif row.state == "impossible":
        lines.append(f"**Cannot be shown:** it needs {row.needs}.\n")
    elif measurements is None or "verdict" not in measurements:
        lines.append(f"**Here:** {row.shows}. Not measured yet: `supple papers {row.key}`.\n")
    else:
        lines += [f"**Here:** {row.shows}.\n", *_measurement_lines(measurements, "Verdict")]
        if on_gpu is not None and "verdict" in on_gpu:
            lines += _measurement_lines(on_gpu, "Verdict on the GPU")
    return "\n".join(lines)


def _measurement_lines(measurements: dict[str, Any], title: str) -> list[str]:
    """Section with tables, pictures, verdict, machine and date."""
    lines = [_table(measurements["parts"])]
    lines += [f"![{caption}]({name})\n\n*{caption}*\n" for name, caption in measurements.get("pictures", [])]
    lines.append(f"**{title}:** {measurements['verdict']}\n")
    for claim in measurements.get("claims", []):
        lines.append(f"- {'holds' if claim['holds'] else 'does not hold'}: {claim['says']}")
    if measurements.get("claims"):
        lines.append("")
    size = "the paper's size" if measurements["full"] else "small"
    cpu, cores = measurements["machine"]["cpu"], measurements["machine"]["cores"]
    load, when = measurements.get("load"), f"{measurements['measured'][:10]}, {measurements['seconds']:g} s"
    busy = f", load {load:g}: times are of a busy machine" if load and load > cores else ""
    device = f"{measurements['device']} beside " if "device" in measurements else ""
    lines.append(f"*{size}; {device}{cores} cores of {cpu}, {when}{busy}*\n")
    return lines


def _table(parts: dict[str, Any]) -> str:
    """Format measurements as tables, one for each set of equal columns; texts stay unchanged."""
    texts = [value for value in parts.values() if isinstance(value, str)]
    groups: dict[tuple[str, ...], list[str]] = {}
    for name, value in parts.items():
        if isinstance(value, dict):
            groups.setdefault(tuple(value), []).append(name)
        elif not isinstance(value, str):
            groups.setdefault((), []).append(name)
    tables = [text + "\n" for text in texts]
    for columns, names in groups.items():
        head = columns or ("",)
        lines = ["| |" + "|".join(head) + "|", "|---|" + "---|" * len(head)]
        for name in names:
            values = [parts[name][column] for column in columns] if columns else [parts[name]]
            lines.append(f"| {name} | " + " | ".join(map(brief, values)) + " |")
        tables.append("\n".join(lines) + "\n")
    return "\n".join(tables)
