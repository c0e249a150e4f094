"""supple dataset: many equilibria of one scene, in a store that tolerates interruptions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from supple.cli.console import DONE, NOT_CONVERGED, errors, folder, handle_errors, note, print_json, say
from supple.cli.shared_options import CommandGroup, Json, Overwrite, Quiet, Workers


class _RunsByDefault(CommandGroup):
    """Command group in which `supple dataset SPEC` means `supple dataset run SPEC`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and not args[0].startswith("-") and args[0] not in self.commands:
            args = ["run", *args]
        return super().parse_args(ctx, args)


dataset = typer.Typer(
    cls=_RunsByDefault,
    help="Create, resume, verify, merge and export data sets of equilibria.",
    no_args_is_help=True,
)

Spec = Annotated[Path, typer.Argument(help="Specification of a data set (TOML).", show_default=False)]
StorePath = Annotated[Path, typer.Argument(help="Folder of a data set.", show_default=False)]
Ray = Annotated[
    str | None,
    typer.Option(help="Solve on a Ray cluster: its address, or 'local' to start one on this machine."),
]
ShardsOption = Annotated[
    str | None,
    typer.Option(
        "--shards", help="Shards to solve: i/N is every N-th, starting at shard i (0 to N-1), for job arrays."
    ),
]


@dataset.command()
def run(
    spec: Spec,
    output: Annotated[
        Path | None,
        typer.Option(parser=folder, help="Folder of the store; default: results/SPEC.zarr."),
    ] = None,
    shards: ShardsOption = None,
    workers: Workers = None,
    ray: Ray = None,
    overwrite: Overwrite = False,
    grow: Annotated[
        bool,
        typer.Option("--grow", help="Add samples to an existing data set, up to the number in the spec."),
    ] = False,
    allow_code: Annotated[
        bool,
        typer.Option("--allow-code", help="Allow the Python function that the spec names to run."),
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Solve all unsolved samples of a spec.

    The command can be repeated at any time, and several machines can run it at once, each with its own
    --shards.
    """
    with handle_errors(json):
        from supple.datasets.run.create import make_store
        from supple.datasets.run.run_dataset import parse_share, store_path
        from supple.datasets.spec.dataset_spec import load_spec

        share = parse_share(shards, grow, overwrite)
        described = load_spec(spec, allow_code=allow_code)
        store = make_store(described, store_path(output, described.name), overwrite, grow=grow)
        _solve(store, share, workers, ray, json, quiet)


@dataset.command()
def resume(
    store: StorePath,
    shards: ShardsOption = None,
    workers: Workers = None,
    ray: Ray = None,
    retry_failed: Annotated[
        bool,
        typer.Option("--retry-failed", help="Solve samples again that crashed or missed their tolerance."),
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Continue a data set from its store; no spec is needed."""
    with handle_errors(json):
        from supple.datasets.run.run_dataset import parse_share
        from supple.datasets.store.dataset_store import Store

        _solve(Store(store), parse_share(shards), workers, ray, json, quiet, retry_failed)


def _solve(
    store: Any,
    share: Any,
    workers: int | None,
    ray: str | None,
    json: bool,
    quiet: bool,
    retry_failed: bool = False,
) -> None:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from supple.datasets.run.run_dataset import run_store
    from supple.datasets.store.status import status as store_status

    columns = TextColumn("sample"), MofNCompleteColumn(), BarColumn(bar_width=28), TimeRemainingColumn()
    silent = quiet or json or not errors.is_terminal
    with Progress(*columns, console=errors, transient=True, disable=silent) as bar:
        task = bar.add_task("solving")

        def show_progress(done: int, samples: int) -> None:
            bar.update(task, completed=done, total=samples)

        run_store(store, share, workers, True if ray == "local" else ray, show_progress, retry_failed)
    statistics = store_status(store)
    bad = statistics["samples"] - statistics["good"] - statistics["outcomes"].get("missing", 0)
    code = NOT_CONVERGED if bad else DONE
    if json:
        print_json(statistics | {"exit_code": code})
    elif not quiet:
        _print_statistics(statistics)
    if code:
        raise typer.Exit(code)


@dataset.command()
def status(store: StorePath, json: Json = False) -> None:
    """Show the number of solved samples, their outcomes and the unfinished shards."""
    with handle_errors(json):
        from supple.datasets.store.dataset_store import Store
        from supple.datasets.store.status import status as store_status

        statistics = store_status(Store(store))
        print_json(statistics) if json else _print_statistics(statistics)


def _print_statistics(statistics: dict[str, Any]) -> None:
    from supple.support.text import format_duration, pluralize

    outcomes = ", ".join(
        f"{count:,} {name.replace('_', ' ')}" for name, count in statistics["outcomes"].items()
    )
    say(f"{statistics['path']}: {pluralize(statistics['samples'], 'sample')}: {outcomes}")
    say(
        f"{statistics['finished_shards']:,} of {pluralize(statistics['shards'], 'shard')} finished, "
        f"{format_duration(statistics['worker_seconds'])} of work"
    )
    if statistics["warm_starts"]:
        warm = statistics["warm_starts"]
        say(
            f"warm starts: {warm['fewer_iterations']:.1f} times fewer iterations, "
            f"{warm['faster']:.1f} times as fast, for {pluralize(warm['compared'], 'sample')} solved "
            f"both ways; for {warm['lower_from_cold']} of them the scene's initial positions led to "
            "a lower energy, and that result was stored"
        )
    if statistics["inverted"]:
        note(
            f"{pluralize(statistics['inverted'], 'sample')} with inverted elements, which do not "
            "count as converged"
        )
    missing = statistics["outcomes"].get("missing", 0)
    if not statistics["good"] and missing < statistics["samples"]:
        note("no sample has reached its tolerance")
    elif bad := statistics["samples"] - missing - statistics["good"]:
        note(
            f"{pluralize(bad, 'sample')} excluded from splits and exports: not converged, or with "
            "inverted elements"
        )
    for sample, sentence in list(statistics["failures"].items())[:5]:
        note(f"sample {sample}: {sentence}")
    if len(statistics["failures"]) > 5:
        note(f"and {len(statistics['failures']) - 5} more that did not converge; --json lists all")
    if statistics["outcomes"].get("crashed"):
        note(f"`supple dataset resume {statistics['path']} --retry-failed` solves them again")


@dataset.command()
def verify(
    store: StorePath,
    samples: Annotated[
        int, typer.Option(help="Number of random samples to solve again and to compare.", min=0)
    ] = 5,
    seed: Annotated[int, typer.Option(help="Random seed of the selection of these samples.", min=0)] = 0,
    discard: Annotated[
        bool,
        typer.Option(
            "--discard",
            help="Mark damaged shards as unfinished, so that resume solves them again.",
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Compare every file of a store with its checksum, and solve a few random samples again.

    Exit codes: 0 the store is complete and intact; 1 files are damaged, missing or foreign, or samples are
    missing.
    """
    with handle_errors(json):
        from supple.datasets.run.store_verification import summarize_verdict, verify_folder

        verdict = verify_folder(store, samples, seed, discard)
        code = DONE if verdict.complete else NOT_CONVERGED
        if json:
            print_json(
                vars(verdict) | {"good": verdict.good, "complete": verdict.complete, "exit_code": code}
            )
        else:
            for sentence in (*verdict.problems, *verdict.notes):
                note(sentence)
            say(summarize_verdict(verdict, store, discard))
        if code:
            raise typer.Exit(code)


@dataset.command()
def merge(
    target: Annotated[Path, typer.Argument(help="Target store.", show_default=False)],
    sources: Annotated[list[Path], typer.Argument(help="Stores of the same spec.", show_default=False)],
    json: Json = False,
) -> None:
    """Merge finished shards of several stores with equal specs into a target, created if missing."""
    with handle_errors(json):
        from supple.datasets.run.merge import merge as merge_stores
        from supple.datasets.store.status import status as store_status

        statistics = store_status(merge_stores(target, sources))
        print_json(statistics) if json else _print_statistics(statistics)


@dataset.command()
def export(
    store: StorePath,
    format_: Annotated[
        str,
        typer.Option(
            "--format", help="Format to export to: lance, hdf5, webdataset or plaid.", show_default=False
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(parser=folder, help="Output folder; default: STORE_FORMAT next to the store."),
    ] = None,
    json: Json = False,
) -> None:
    """Export the converged samples to another format, with a data card."""
    with handle_errors(json):
        from supple.datasets.exports import export_dataset
        from supple.datasets.read.dataset import open_dataset

        path = export_dataset(open_dataset(store), format_, output)
        print_json({"folder": str(path)}) if json else say(path)


@dataset.command()
def report(
    store: StorePath,
    output: Annotated[Path | None, typer.Option(help="HTML file; default: next to the store.")] = None,
    json: Json = False,
) -> None:
    """Write an HTML page with extreme samples, histograms, varied quantities, scene and machine."""
    with handle_errors(json):
        from supple.datasets.read.report_page import write_page

        path, page = write_page(store, output)
        if json:
            print_json({"file": str(path), "bytes": path.stat().st_size, "remarks": page.remarks})
            return
        say(path)
