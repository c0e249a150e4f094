"""One page of all figures and tables: what the paper says, what was measured, on what, and the verdict."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from supple.io.replacing import replacing
from supple.papers.record import brief, read_record, record_path
from supple.papers.registry import Row, rows, titles

WORDS = ("agrees", "differs", "partly")
"""How a verdict of a measurement begins."""

HEAD = """# The five papers, figure by figure

What each figure and table says, what supple measures of it, and the verdict. `supple papers` lists them,
`supple papers pbng-fig7` measures one, and `supple papers --page` writes this page from what was measured.
Sizes are small unless a row says otherwise; `--full` takes the paper's.
"""


def write_page(folder: Path) -> Path:
    """README.md in a folder of records, from all that are there."""
    records = {key: read_record(folder / f"{key}.json") for key in rows()}
    parts = [HEAD, _counts(records)]
    for paper, title in titles().items():
        parts.append(f"## {paper.upper()}: {title}\n")
        for row in rows().values():
            if row.paper == paper:
                on_gpu = read_record(record_path(folder, row.key, "cuda"))
                parts.append(_section(row, records[row.key], on_gpu))
    path = folder / "README.md"
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        temporary.write_text("\n".join(parts), encoding="utf-8")
    return path


def standing(row: Row, record: dict[str, Any] | None) -> str:
    """agrees, differs, partly, elsewhere, illustration, impossible, not yet, or not measured."""
    if row.state != "shown":
        return row.state
    verdict = (record or {}).get("verdict", "")
    return next((word for word in WORDS if verdict.startswith(word)), "not measured")


def _counts(records: dict[str, dict[str, Any] | None]) -> str:
    """A table of how many of each paper's rows stand how."""
    columns = [*WORDS, "elsewhere", "not measured", "not yet", "impossible", "illustration"]
    lines = ["| |" + "|".join(columns) + "|", "|---|" + "---|" * len(columns)]
    for paper in titles():
        found = Counter(standing(row, records[key]) for key, row in rows().items() if row.paper == paper)
        lines.append(f"|{paper.upper()}|" + "|".join(str(found[column]) for column in columns) + "|")
    return "\n".join(lines) + "\n"


def _section(row: Row, record: dict[str, Any] | None, on_gpu: dict[str, Any] | None = None) -> str:
    lines = [f"### {row.paper.upper()} {row.label}\n", f"**Paper:** {row.claim}\n"]
    if row.state == "illustration":
        lines.append("**Nothing to measure:** a drawing or a list.\n")
    elif row.state == "impossible":
        lines.append(f"**Cannot be shown:** it needs {row.needs}.\n")
    elif row.state == "elsewhere":
        lines.append(f"**Shown elsewhere:** {row.needs}.\n")
    elif row.state == "not yet":
        lines.append(f"**Not yet shown:** it needs {row.needs}.\n")
    elif record is None or "verdict" not in record:
        lines.append(f"**Here:** {row.shows}. Not measured yet: `supple papers {row.key}`.\n")
    else:
        lines += [f"**Here:** {row.shows}.\n", *_measured(record, "Verdict")]
        if on_gpu is not None and "verdict" in on_gpu:
            lines += _measured(on_gpu, "Verdict on the GPU")
    return "\n".join(lines)


def _measured(record: dict[str, Any], title: str) -> list[str]:
    """Figures, pictures, the verdict, and where and when it was measured."""
    lines = [_table(record["parts"])]
    lines += [f"![{caption}]({name})\n\n*{caption}*\n" for name, caption in record.get("pictures", [])]
    lines.append(f"**{title}:** {record['verdict']}\n")
    size = "the paper's size" if record["full"] else "small"
    cpu, cores = record["machine"]["cpu"], record["machine"]["cores"]
    load, when = record.get("load"), f"{record['measured'][:10]}, {record['seconds']:g} s"
    busy = f", load {load:g}: times are of a busy machine" if load and load > cores else ""
    device = f"{record['machine'].get('gpu') or 'a GPU'} beside " if record.get("device") else ""
    lines.append(f"*{size}; {device}{cores} cores of {cpu}, {when}{busy}*\n")
    return lines


def _table(parts: dict[str, Any]) -> str:
    lines = ["| | |", "|---|---|"]
    lines += [f"| {name} | {brief(value)} |" for name, value in parts.items()]
    return "\n".join(lines) + "\n"
