"""`kraft-wire audit`: is any byte of these log directories damaged, do the replicas agree.

Reads the directories of stopped or running nodes, of this project and of Apache Kafka alike, on all
cores, and changes nothing. Needs the extra `columnar`, which is imported only here.
Exit codes: 0 no error, 1 errors were found, 2 could not run.
"""

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.text import Text

from kraft_wire.cli.node_dirs import NodeDirs, paths_of
from kraft_wire.cli.output import counted, new_table, wide_console

if TYPE_CHECKING:
    from kraft_wire.audit.collector import AuditResult

__all__ = [
    "Acks",
    "AsJson",
    "Checks",
    "FailOn",
    "FailsOn",
    "HighWatermark",
    "Output",
    "app",
    "exit_code",
    "print_json",
    "print_table",
]

app = typer.Typer(add_completion=False, rich_markup_mode=None)

_ERRORS_FOUND: Final = 1
_COULD_NOT_RUN: Final = 2
_ROWS_MAX: Final = 200
_STYLES: Final = {"error": "bold red", "warn": "yellow", "info": "dim"}


class FailOn(StrEnum):
    """From which severity on the exit code is 1."""

    ERROR = "error"
    WARN = "warn"
    NEVER = "never"


Checks = Annotated[
    str | None, typer.Option(metavar="CHECK,...", help="Comma-separated checks (default: all).")
]
Acks = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Acknowledged values: JSON lines of topic, partition, offset, crc32."
    ),
]
HighWatermark = Annotated[
    Path | None,
    typer.Option(
        "--high-watermark", metavar="FILE", help="High watermarks: a checkpoint file or JSON."
    ),
]
FailsOn = Annotated[FailOn, typer.Option("--fail-on", help="Lowest severity for exit code 1.")]
Output = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Write findings.parquet and report.html there.")
]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print one JSON object per finding, and a summary.")
]
"""The options of an audit, with Spark and without."""


@app.command()
def audit(
    directories: NodeDirs,
    checks: Checks = None,
    acks: Acks = None,
    high_watermark: HighWatermark = None,
    fail_on: FailsOn = FailOn.ERROR,
    output: Output = None,
    processes: Annotated[
        int, typer.Option(min=0, metavar="N", help="Number of processes; 0: one per core.")
    ] = 0,
    as_json: AsJson = False,
) -> None:
    """Check log directories: damage, replicas that differ, losses."""
    errors = Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)
    try:
        result = _run(directories, checks, acks, high_watermark, output, processes, errors)
        if output is not None:
            _write(result, output)
    except _CannotRun as error:
        errors.print(f"kraft-wire audit: {error}", markup=False)
        raise typer.Exit(_COULD_NOT_RUN) from error
    if as_json:
        print_json(result)
    else:
        print_table(result, output)
    raise typer.Exit(exit_code(result, fail_on))


class _CannotRun(Exception):
    """Why the command cannot do its work, as one line."""


def _run(
    directories: list[str],
    checks: str | None,
    acks: Path | None,
    high_watermark: Path | None,
    output: Path | None,
    processes: int,
    errors: Console,
) -> "AuditResult":
    """Import the extra's packages, and run the audit under a progress bar."""
    try:
        import kraft_wire.columnar  # noqa: F401  # its error names the missing extra
        from kraft_wire.audit import collector
        from kraft_wire.audit.report import refuse_place
    except ImportError as error:
        raise _CannotRun(str(error)) from error
    try:
        chosen = collector.checks_of(checks)
        ledger = None if acks is None else collector.read_ledger_file(acks)
        reported = None
        if high_watermark is not None:
            reported = collector.read_high_watermarks(high_watermark)
        paths = paths_of(directories)
        if output is not None:
            refuse_place(output, paths)
        plan = collector.plan_audit(paths, ledger=ledger, high_watermarks=reported)
        with _progress(errors) as bar:
            task = bar.add_task("audit", total=plan.size_bytes)
            return collector.run_audit(
                plan,
                chosen,
                processes=processes or None,
                progress=lambda size: bar.advance(task, size),
            )
    except collector.CannotAudit as error:
        raise _CannotRun(str(error)) from error


def _progress(errors: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        console=errors,
        transient=True,
        disable=not errors.is_terminal,
    )


def _write(result: "AuditResult", output: Path) -> None:
    from kraft_wire.audit.report import write_report

    try:
        write_report(result, output)
    except OSError as error:
        raise _CannotRun(f"{error.filename or output}: {error.strerror or error}") from error


def exit_code(result: "AuditResult", fail_on: FailOn) -> int:
    """Return the exit code that the findings mean."""
    counted = {FailOn.ERROR: ("error",), FailOn.WARN: ("error", "warn"), FailOn.NEVER: ()}
    is_bad = any(result.count(severity) for severity in counted[fail_on])
    return _ERRORS_FOUND if is_bad else 0


def print_json(result: "AuditResult") -> None:
    """Print one object a finding, and the summary."""
    write = sys.stdout.write
    for finding in result.findings:
        write(json.dumps(finding.to_json(), ensure_ascii=False) + "\n")
    write(json.dumps({"summary": result.summary()}) + "\n")


def print_table(result: "AuditResult", output: Path | None = None) -> None:
    """Print the findings and the summary for people."""
    console = wide_console()
    findings = result.findings
    if findings:
        table = new_table("severity", "check", "node", "partition", "offset", "file", "detail")
        for each in findings[:_ROWS_MAX]:
            place = each.file if each.position < 0 else f"{each.file} @{each.position}"
            offset = str(each.offset) if each.offset >= 0 else ""
            cells = (each.check, each.node, each.place, offset, place)
            severity = Text(each.severity, style=_STYLES[each.severity])
            table.add_row(severity, *map(Text, cells), Text(each.detail))
        console.print(table)
        if len(findings) > _ROWS_MAX:
            console.print(f"… and {len(findings) - _ROWS_MAX} more: --json shows all")
    summary = result.summary()
    nouns = (("node", ""), ("partition", ""), ("batch", "batches"), ("byte", ""))
    numbers = [counted(summary[many or f"{one}s"], one, many) for one, many in nouns]
    console.print(f"read {', '.join(numbers)}")
    verdict = Text(
        f"{summary['errors']} errors", style="bold red" if summary["errors"] else "green"
    )
    verdict.append(f", {result.count('warn')} warnings, {result.count('info')} notes", "default")
    console.print(verdict)
    if output is not None:
        console.print(f"report: {output / 'report.html'}", markup=False)
