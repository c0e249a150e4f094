"""Files of TOML, read; what is no such file is refused with its path."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any


def read_toml(path: Path, what: str, refused: Callable[[list[str]], Exception]) -> dict[str, Any]:
    """The tables of a file that should be a `what`, or the error that `refused` makes of a sentence."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise refused([f"{path}: there is no such {what} (looked for {path.absolute()})."]) from None
    except (OSError, UnicodeDecodeError) as error:
        raise refused([f"{path}: cannot be read as text: {error}."]) from error
    except RecursionError:
        raise refused([f"{path}: brackets are nested too deeply for a {what}."]) from None
    except tomllib.TOMLDecodeError as error:
        raise refused([f"{path}: this is not TOML: {error}."]) from error
