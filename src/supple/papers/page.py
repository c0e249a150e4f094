"""One page of all figures and tables: what the paper says, what was measured, on what, and the verdict."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from supple.io.replacing import replacing
from supple.papers.account import account_path, brief, read_account
from supple.papers.registry import Row, rows, titles

WORDS = ("agrees", "differs", "partly")
"""How a verdict of a measurement begins."""

HEAD = """# The five papers, figure by figure

supple has the methods of five papers on one substrate: the same meshes, materials, loads and residuals for
all. This page goes through every figure and table of them: what the paper says, what supple measures, on what
machine, and a verdict in a sentence. `supple papers` lists them, `supple papers pbng-fig7` measures one and
goes on where it was interrupted, `--full` takes the paper's sizes in place of small ones, `--device cuda`
measures rows of times on a GPU, and `supple papers --page` writes this page from what was measured.
[options](options.md) says how to ask for everything that the papers compare with.

What a row of a paper claims is written down as conditions on figures before they are measured, and these
decide the verdict: *agrees* where all of them hold, *differs* where none does, *partly* where some do.
Every one that does not hold is in the list below, with the reason. *impossible*: it needs what nobody can
have. *illustration*: a drawing, or a list. [Item by item](audit.md) is what the papers describe, and where
it is.
"""


def write_page(folder: Path) -> Path:
    """README.md in a folder of accounts, from all that are there."""
    accounts = {key: read_account(folder / f"{key}.json") for key in rows()}
    parts = [HEAD, _counts(accounts), _differing(accounts)]
    for paper, title in titles().items():
        parts.append(f"## {paper.upper()}: {title}\n")
        for row in rows().values():
            if row.paper == paper:
                on_gpu = read_account(account_path(folder, row.key, "cuda"))
                parts.append(_section(row, accounts[row.key], on_gpu))
    path = folder / "README.md"
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        temporary.write_text("\n".join(parts), encoding="utf-8")
    return path


def standing(row: Row, account: dict[str, Any] | None) -> str:
    """agrees, differs, partly, illustration, impossible, or not measured."""
    if row.state != "shown":
        return row.state
    verdict = (account or {}).get("verdict", "")
    return next((word for word in WORDS if verdict.startswith(word)), "not measured")


def _counts(accounts: dict[str, dict[str, Any] | None]) -> str:
    """A table of how many of each paper's rows stand how."""
    columns = [*WORDS, "not measured", "impossible", "illustration"]
    lines = ["| |" + "|".join([*columns, "claims that hold"]) + "|", "|---|" + "---|" * (len(columns) + 1)]
    for paper in [*titles(), "all"]:
        chosen = {key: row for key, row in rows().items() if paper in ("all", row.paper)}
        found = Counter(standing(row, accounts[key]) for key, row in chosen.items())
        held = [claim["holds"] for key in chosen for claim in (accounts[key] or {}).get("claims", [])]
        name = "all" if paper == "all" else f"[{paper.upper()}](#{_anchor(paper)})"
        lines.append(f"|{name}|{_cells(found, columns)}{sum(held)} of {len(held)}|")
    return "\n".join(lines) + "\n"


def _cells(found: Counter[str], columns: list[str]) -> str:
    return "|".join(str(found[column]) for column in columns) + "|"


def _anchor(paper: str) -> str:
    """Where the heading of a paper is, as GitHub has it."""
    heading = f"{paper}: {titles()[paper]}".lower()
    kept = "".join(c for c in heading if c.isalnum() or c in " -")
    return kept.replace(" ", "-")


def _differing(accounts: dict[str, dict[str, Any] | None]) -> str:
    """Claims that do not hold, one line each, with the reason."""
    lines = ["What does not hold here, and why:\n"]
    for key, row in rows().items():
        place = f"{row.paper}-{row.label}".lower().replace(". ", "-").replace(" ", "-")
        for claim in (accounts[key] or {}).get("claims", []):
            if not claim["holds"]:
                why = claim["why"] or "the reason is not known."
                lines.append(f"- [{row.paper.upper()} {row.label}](#{place}), {claim['says']}: {why}")
    return "\n".join(lines) + "\n" if len(lines) > 1 else ""


def _section(row: Row, account: dict[str, Any] | None, on_gpu: dict[str, Any] | None = None) -> str:
    lines = [f"### {row.paper.upper()} {row.label}\n", f"**Paper:** {row.claim}\n"]
    if row.state == "illustration":
        lines.append("**Nothing to measure:** a drawing or a list.\n")
    elif row.state == "impossible":
        lines.append(f"**Cannot be shown:** it needs {row.needs}.\n")
    elif account is None or "verdict" not in account:
        lines.append(f"**Here:** {row.shows}. Not measured yet: `supple papers {row.key}`.\n")
    else:
        lines += [f"**Here:** {row.shows}.\n", *_measured(account, "Verdict")]
        if on_gpu is not None and "verdict" in on_gpu:
            lines += _measured(on_gpu, "Verdict on the GPU")
    return "\n".join(lines)


def _measured(account: dict[str, Any], title: str) -> list[str]:
    """Figures, pictures, the verdict, and where and when it was measured."""
    lines = [_table(account["parts"])]
    lines += [f"![{caption}]({name})\n\n*{caption}*\n" for name, caption in account.get("pictures", [])]
    lines.append(f"**{title}:** {account['verdict']}\n")
    for claim in account.get("claims", []):
        lines.append(f"- {'holds' if claim['holds'] else 'does not hold'}: {claim['says']}")
    if account.get("claims"):
        lines.append("")
    size = "the paper's size" if account["full"] else "small"
    cpu, cores = account["machine"]["cpu"], account["machine"]["cores"]
    load, when = account.get("load"), f"{account['measured'][:10]}, {account['seconds']:g} s"
    busy = f", load {load:g}: times are of a busy machine" if load and load > cores else ""
    device = f"{account['device']} beside " if "device" in account else ""
    lines.append(f"*{size}; {device}{cores} cores of {cpu}, {when}{busy}*\n")
    return lines


def _table(parts: dict[str, Any]) -> str:
    """Measurements as tables: those that have the same figures beside each other, texts as they are."""
    texts = [value for value in parts.values() if isinstance(value, str)]
    groups: dict[tuple[str, ...], list[str]] = {}
    for name, value in parts.items():
        if isinstance(value, dict):
            groups.setdefault(tuple(value), []).append(name)
        elif not isinstance(value, str):
            groups.setdefault((), []).append(name)
    found = [text + "\n" for text in texts]
    for figures, names in groups.items():
        head = figures or ("",)
        lines = ["| |" + "|".join(head) + "|", "|---|" + "---|" * len(head)]
        for name in names:
            values = [parts[name][figure] for figure in figures] if figures else [parts[name]]
            lines.append(f"| {name} | " + " | ".join(map(brief, values)) + " |")
        found.append("\n".join(lines) + "\n")
    return "\n".join(found)
