"""Files of TOML, read; what is no such file is refused with its path."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from supple.input_files import InputFileError, read_text


def read_toml(path: Path, what: str, refused: Callable[[list[str]], Exception]) -> dict[str, Any]:
    """The tables of a file that should be a `what`, or the error that `refused` makes of a sentence."""
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
    except ValueError:  # Python converts no number of so many digits
        raise refused([f"{path}: {_too_long_number(path)}."]) from None


def _too_long_number(path: Path) -> str:
    """Which line has a whole number that Python refuses to convert."""
    most = sys.get_int_max_str_digits()
    number = re.compile(rf"(?:\d_?){{{most + 1},}}")
    lines = [k for k, line in enumerate(read_text(path).splitlines(), start=1) if number.search(line)]
    where = f"line {lines[0]} has" if lines else "there is"
    return f"{where} a whole number of more than {most:,} digits"
