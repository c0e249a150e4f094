"""Reading of TOML files; errors name the path."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from supple.input_files import InputFileError, read_text


def read_toml(path: Path, what: str, refused: Callable[[list[str]], Exception]) -> dict[str, Any]:
    """Read tables from a TOML file.

    Args:
        path: Path of the file.
        what: Name of the expected kind of file, for messages.
        refused: Makes the exception from a list of messages.
    """
    try:
        return tomllib.loads(read_text(path))
    except FileNotFoundError:
        raise refused([f"{path}: there is no such {what} (looked for {path.absolute()})."]) from None
    except InputFileError as error:
        raise refused([f"{path}: {error}."]) from None
    except (OSError, UnicodeDecodeError) as error:
        raise refused([f"{path}: cannot be read as text: {error}."]) from error
    except RecursionError:
        raise refused([f"{path}: brackets are nested too deeply for a {what}."]) from None
    except tomllib.TOMLDecodeError as error:
        raise refused([f"{path}: this is not TOML: {error}."]) from error
    except ValueError:  # the number has more digits than Python converts
        raise refused([f"{path}: {_too_long_number(path)}."]) from None


def _too_long_number(path: Path) -> str:
    """Locate the line with an integer beyond Python's conversion limit."""
    most = sys.get_int_max_str_digits()
    number = re.compile(rf"(?:\d_?){{{most + 1},}}")
    lines = [k for k, line in enumerate(read_text(path).splitlines(), start=1) if number.search(line)]
    where = f"line {lines[0]} has" if lines else "there is"
    return f"{where} a whole number of more than {most:,} digits"
