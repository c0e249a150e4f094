"""supple verify: integrity of the files in a results folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from supple.cli.console import DONE, NOT_CONVERGED, handle_errors, note, print_json, say
from supple.cli.shared_options import Json, Quiet


def verify(
    results: Annotated[
        Path,
        typer.Argument(help="Results folder of `supple run` or `supple compare`.", show_default=False),
    ],
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare every file of a results folder with its checksum.

    Names damaged, missing and unexpected files.

    Exit codes: 0 all files are intact; 1 some are not, or the run has no checksums; 2 there is no results
    folder. Data sets have `supple dataset verify`.
    """
    with handle_errors(json):
        from supple.io.verification import summarize_verification, verify_results

        verification = verify_results(results)
        code = DONE if verification.good else NOT_CONVERGED
        if json:
            print_json(vars(verification) | {"good": verification.good, "exit_code": code})
        else:
            for sentence in verification.problems:
                note(sentence)
            if not quiet:
                if verification.foreign:
                    note(f"not supple's, and not verified: {', '.join(verification.foreign)}")
                say(f"{results}: {summarize_verification(verification)}")
    if code:
        raise typer.Exit(code)
