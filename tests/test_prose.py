"""Prose of docstrings and pages, and words of identifiers.

Grammar words (articles, prepositions, pronouns, auxiliaries, conjunctions) are counted because a sentence
without nouns is made of them. A sentence without articles is as hard to read, so pages have bounds on
both sides. The figures of docstrings and identifiers may only fall.
"""

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

import supple

ROOT = Path(supple.__file__).parent
PAGES = Path(__file__).parents[1]

GRAMMAR_WORDS = frozenset(
    """a about after all also although among an and another any anybody anything are as at be because been
    before being below between both but by can could did do does done each either else even every
    for from had has have having he here how i if in into is it its itself just less like many may
    might more most much must neither no nobody none nor not nothing of off often on once one only
    onto or other our out over own per same shall she should so some somebody something still such
    than that the their them then there these they this those though through to too under unless
    until up upon was we were what whatever when where whether which while who whoever whom whose
    why will with within without would yet you your""".split()  # noqa: SIM905
)

MAX_GRAMMAR_SHARE = 0.38
"""Mean share of grammar words in the first paragraphs of docstrings."""

MAX_WORDY_SHARE = 0.01
"""Share of docstrings with more than 60 % grammar words in their first paragraph."""

MAX_ODD_OPENERS = 0.015
"""Share of docstrings that begin with a word of `ODD_OPENERS`."""

MAX_PAGE_SHARE = 0.42
"""Share of grammar words in README and docs. Pages without nouns had 0.50."""

MIN_PAGE_ARTICLES = 0.09
"""Share of the articles a, an, the in README and docs. Pages in telegram style had 0.080."""

ODD_OPENERS = frozenset(
    ["what", "where", "when", "how", "who", "whether", "those", "these", "of", "one", "all", "as", "whatever"]
)

PRIVATE_WORDS = frozenset(
    """adrift anew aim aims balls beside caution coast coasted confines crowd exert feelers flown fly foot
    forget glide grip halted held home hurry looking looked looks meetings owe owed pace pierced
    piercing pressing pursue recall remembered righting rough rub rubbing rubs settle settled sift
    slippery snap soften standing there things twin wanted whereabouts workplace""".split()  # noqa: SIM905
)
"""Words of earlier versions that the literature does not use; the field has others."""

MAX_PRIVATE_WORDS = 2
"""Occurrences of `PRIVATE_WORDS` in identifiers."""

SOURCES = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in ROOT.rglob("*.py")}


def words_of(text):
    return [word.lower() for word in re.findall(r"[A-Za-z][A-Za-z']*", re.sub(r"`[^`]*`", "", text))]


def grammar_share(text):
    words = words_of(text)
    return sum(word in GRAMMAR_WORDS for word in words) / len(words)


@pytest.fixture(scope="module")
def paragraphs():
    """First paragraphs of docstrings with 7 to 45 words."""
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    texts = [
        text.split("\n\n")[0]
        for source in SOURCES.values()
        for node in ast.walk(ast.parse(source))
        if isinstance(node, documented) and (text := ast.get_docstring(node))
    ]
    chosen = [text for text in texts if 7 <= len(words_of(text)) <= 45]
    assert len(chosen) > 2000
    return chosen


def test_docstrings_have_enough_nouns(paragraphs):
    shares = [grammar_share(text) for text in paragraphs]
    assert sum(shares) / len(shares) <= MAX_GRAMMAR_SHARE
    assert sum(share > 0.6 for share in shares) / len(shares) <= MAX_WORDY_SHARE


def test_docstrings_open_with_their_subject(paragraphs):
    odd = [text for text in paragraphs if words_of(text)[0] in ODD_OPENERS]
    assert len(odd) / len(paragraphs) <= MAX_ODD_OPENERS, odd


@pytest.fixture(scope="module")
def page_words():
    """Words of README and docs, without code, tables and comments."""
    pages = [PAGES / "README.md", *sorted((PAGES / "docs").rglob("*.md"))]
    unread = re.compile(r"^```.*?^```|^\|.*?$|<!--.*?-->", re.M | re.S)
    assert len(pages) > 20
    return [word for page in pages for word in words_of(unread.sub("", page.read_text(encoding="utf-8")))]


def test_pages_have_enough_nouns(page_words):
    assert sum(word in GRAMMAR_WORDS for word in page_words) / len(page_words) <= MAX_PAGE_SHARE


def test_pages_have_enough_articles(page_words):
    assert sum(word in {"a", "an", "the"} for word in page_words) / len(page_words) >= MIN_PAGE_ARTICLES


def test_identifiers_use_the_words_of_the_field():
    count = Counter()
    for source in SOURCES.values():
        for node in ast.walk(ast.parse(source)):
            for name in (getattr(node, key, None) for key in ("id", "attr", "arg", "name")):
                if isinstance(name, str):
                    count.update(set(re.split("_+", name.lower())) & PRIVATE_WORDS)
    assert sum(count.values()) <= MAX_PRIVATE_WORDS, count
