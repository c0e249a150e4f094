"""Links and names on pages exist: files, headings, pictures, scripts and benchmark results."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
RESULTS = sorted((ROOT / "benchmarks" / "results").glob("*.json"))
PICTURES = sorted(path for path in (ROOT / "docs").rglob("*") if path.suffix in (".png", ".webp"))
LINK = re.compile(r"\]\(([^)\s]+)\)|(?:href|src)=\"([^\"]+)\"")
NAMED = re.compile(r"\b(?:benchmarks|examples|scenes|tests|docs)/[\w./-]*\.(?:py|json|toml|md|png|webp)\b")

if not PAGES[0].is_file():
    pytest.skip("no sources here", allow_module_level=True)


def relative_path(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def text_of(page: Path) -> str:
    """Text of a page without code listings, whose brackets are not links."""
    return re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)


def headings(page: Path) -> set[str]:
    """Anchors of a page, as GitHub derives them from its headings."""
    lines = re.findall(r"^#+ (.+)$", text_of(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", line.lower()).strip().replace(" ", "-") for line in lines}


def broken(page: Path) -> list[str]:
    wrong = []
    for link in (a or b for a, b in LINK.findall(text_of(page))):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in headings(target)):
            wrong.append(link)
    return wrong


@pytest.mark.parametrize("page", PAGES, ids=relative_path)
def test_links_resolve(page):
    assert broken(page) == []


@pytest.mark.parametrize("page", PAGES, ids=relative_path)
def test_named_files_exist(page):
    assert [
        name for name in NAMED.findall(page.read_text(encoding="utf-8")) if not (ROOT / name).exists()
    ] == []


def test_every_picture_is_on_a_page():
    linked_pictures = {
        (page.parent / (a or b)).resolve()
        for page in PAGES
        for a, b in LINK.findall(page.read_text(encoding="utf-8"))
    }
    assert [relative_path(path) for path in PICTURES if path not in linked_pictures] == []


@pytest.mark.parametrize("path", RESULTS, ids=relative_path)
def test_results_name_their_machine(path):
    assert names_machine(json.loads(path.read_text(encoding="utf-8")))


def names_machine(results: object, deep: int = 3) -> bool:
    """True if a table of results, or each of its parts, names a machine."""
    if not isinstance(results, dict) or not deep:
        return False
    if results.keys() & {"machine", "machines"}:
        return True
    return bool(results) and all(names_machine(part, deep - 1) for part in results.values())


def test_every_result_is_named_by_a_script_or_page():
    """A result is named by the script that writes it, or by the page that compares it."""
    sources = "".join(p.read_text(encoding="utf-8") for p in [*(ROOT / "benchmarks").glob("*.py"), *PAGES])
    assert [path.name for path in RESULTS if path.name not in sources] == []
