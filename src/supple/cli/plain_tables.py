"""Output to streams with a limited character set, such as ASCII or Latin-1 terminals.

Unsupported characters are replaced instead of raising an error: ν becomes nu.
"""

from __future__ import annotations

import codecs
import unicodedata
from typing import TextIO

ASCII_REPLACEMENTS = {
    "·": "-",
    "–": "-",
    "—": "-",
    "×": "x",
    "≤": "<=",
    "≥": ">=",
    "√": "sqrt",
    "→": "->",
    "∂": "d",
    "½": "1/2",
    "²": "^2",
    "³": "^3",
    "ᵀ": "^T",
    "λ": "lambda",
    "\u0302": "^",
}


def replace_letter(letter: str) -> str:
    """ASCII replacement of a character: nu for ν, e for é, ... for …, ? without a close match."""
    if letter in ASCII_REPLACEMENTS:
        return ASCII_REPLACEMENTS[letter]
    name = unicodedata.name(letter, "")
    if name.startswith("GREEK"):
        return name.split()[-1].lower()
    return unicodedata.normalize("NFKD", letter).encode("ascii", "ignore").decode() or "?"


def _replace_unencodable(error: UnicodeError) -> tuple[str | bytes, int]:
    """Encoding error handler that writes ASCII replacements; undecodable bytes of file names are kept."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    letters = error.object[error.start : error.end]
    if all("\udc80" <= letter <= "\udcff" for letter in letters):
        return bytes(ord(letter) - 0xDC00 for letter in letters), error.end
    return "".join(map(replace_letter, letters)), error.end


codecs.register_error("supple.plain", _replace_unencodable)


def use_ascii_replacements(*streams: TextIO) -> None:
    """Replace characters that a stream cannot encode by ASCII."""
    for stream in streams:
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="supple.plain")
