"""`kraft-wire conform`: judge any Kafka broker from the wire.

Exit codes: 0 every row passed or is not supported, 1 a row failed or differs, 2 the command could
not run.
With `--compare` and `--replay`: 0 no field differs, 1 a field differs.
"""

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from kraft_wire.conformance.answers import Answers
from kraft_wire.conformance.case import Case, Listener, all_cases
from kraft_wire.conformance.connection import split_address
from kraft_wire.conformance.differences import differences
from kraft_wire.conformance.drawn.sequence import drawn_cases, seed_range
from kraft_wire.conformance.profile import DEFAULT_PROFILE, UnknownProfile, read_profile
from kraft_wire.conformance.recording import Recording, UnreadableRecording
from kraft_wire.conformance.reports.comparison import comparison_json, comparison_text
from kraft_wire.conformance.reports.json_report import json_report
from kraft_wire.conformance.reports.junit import junit_report
from kraft_wire.conformance.reports.page import html_report
from kraft_wire.conformance.reports.text import text_report
from kraft_wire.conformance.run import Row, rows_of, run_rows
from kraft_wire.conformance.target import Target, Unreachable, learn_target
from kraft_wire.conformance.verdict import Outcome
from kraft_wire.login.client_config import Security, UnusableConfig, read_client_config

__all__ = ["app"]

app = typer.Typer(add_completion=False, rich_markup_mode=None)

_FAILED: Final = 1
_COULD_NOT_RUN: Final = 2
_TIMEOUT_S: Final = 10.0

Address = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-server",
        "-b",
        metavar="HOST:PORT",
        help="Broker to test (default: KRAFT_WIRE_BOOTSTRAP_SERVER, else 127.0.0.1:9092).",
    ),
]
ControllerAddress = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-controller",
        "-c",
        metavar="HOST:PORT",
        help="Active controller, for its RPCs.",
    ),
]
CommandConfig = Annotated[
    Path | None,
    typer.Option(
        "--command-config",
        metavar="FILE",
        help="File of Kafka's client settings: security.protocol, sasl.*, and ssl.* in PEM.",
    ),
]
Only = Annotated[
    list[str] | None,
    typer.Option(
        "--only",
        metavar="GLOB",
        help="Run matching tests: produce, 'fetch.session*', produce.gzip/9; may be repeated.",
    ),
]
ProfileName = Annotated[
    str,
    typer.Option(
        "--profile",
        metavar="PROFILE",
        help="Expected behavior: apache-4.4, apache-4.3, apache-3.9 or minimal.",
    ),
]
Json = Annotated[
    Path | None, typer.Option("--json", metavar="FILE", help="Write the report as JSON.")
]
JUnit = Annotated[
    Path | None, typer.Option("--junit", metavar="FILE", help="Write the report as JUnit XML.")
]
Html = Annotated[
    Path | None, typer.Option("--html", metavar="FILE", help="Write the report as an HTML page.")
]
Parallel = Annotated[
    int, typer.Option("--parallel", min=1, metavar="N", help="Number of parallel tests.")
]
Timeout = Annotated[
    float,
    typer.Option("--timeout", min=0.1, metavar="SECONDS", help="Longest wait for a response."),
]
Compare = Annotated[
    tuple[str, str] | None,
    typer.Option(
        "--compare",
        metavar="A B",
        help="Send the same requests to two brokers, and list the fields that differ. Each is "
        "HOST:PORT, or HOST:PORT,HOST:PORT with its controller behind it.",
    ),
]
Record = Annotated[
    Path | None, typer.Option("--record", metavar="FILE", help="Record all requests and responses.")
]
Replay = Annotated[
    Path | None,
    typer.Option("--replay", metavar="FILE", help="Compare the broker with a recorded one."),
]
Random = Annotated[
    str | None,
    typer.Option(
        "--random",
        metavar="A:B",
        help="With --compare: send random requests, one sequence per seed A to B-1.",
    ),
]
Requests = Annotated[
    int, typer.Option("--requests", min=1, metavar="N", help="Requests per sequence.")
]
List = Annotated[bool, typer.Option("--list", help="List the tests and exit.")]


@app.command()
def conform(
    bootstrap_server: Address = None,
    bootstrap_controller: ControllerAddress = None,
    command_config: CommandConfig = None,
    only: Only = None,
    profile: ProfileName = DEFAULT_PROFILE,
    json: Json = None,
    junit: JUnit = None,
    html: Html = None,
    parallel: Parallel = 4,
    timeout: Timeout = _TIMEOUT_S,
    compare: Compare = None,
    record: Record = None,
    replay: Replay = None,
    random: Random = None,
    requests: Requests = 100,
    list_rows: List = False,
) -> None:
    """Test a broker over the wire and report where it differs from Apache Kafka."""
    cases = all_cases()
    try:
        if random is not None:
            _check_compares(compare)
            cases = drawn_cases(seed_range(random), requests, read_profile(profile))
        recording = _recorded(compare, replay)
        profile = profile if recording is None else recording.profile
        rows = _rows(cases, profile, only or ())
        if list_rows:
            _list(rows)
            return
        places = compare or (_place(bootstrap_server, bootstrap_controller),)
        brokers = _brokers(places, timeout, command_config)
    except (*_REFUSALS, ValueError) as error:
        typer.echo(f"kraft-wire conform: {error}", err=True)
        raise typer.Exit(_COULD_NOT_RUN) from error
    is_comparison = compare is not None or replay is not None
    if is_comparison:
        rows = _of_both(rows, brokers)
    keeps_exchanges = is_comparison or record is not None
    # Coordinators batch the requests of concurrent producers, so drawn ones are sent one by one.
    workers = parallel if random is None else 1
    answers = None if is_comparison else Answers.read(profile)
    runs = [_run(rows, each, workers, keeps_exchanges, answers) for each in brokers]
    told = zip(runs, places, strict=True)
    recordings = [Recording.of(each, place, profile) for each, place in told]
    if record is not None:
        recordings[0].write(record)
    if recording is not None:
        recordings.insert(0, recording)
    if len(recordings) > 1:
        left, right = recordings
        _tell_differences(left, right, json)
        return
    (outcomes,), address = runs, bootstrap_server or bootstrap_controller or ""
    for line in text_report(outcomes, address):
        typer.echo(line)
    _write(json, lambda: json_report(outcomes, address, profile))
    _write(junit, lambda: junit_report(outcomes))
    _write(html, lambda: html_report(outcomes, cases, address, profile))
    _exit_by(outcomes)


def _brokers(
    places: Sequence[str], timeout_s: float, command_config: Path | None
) -> list[dict[Listener, Target]]:
    security = _security(command_config)
    return [_targets(each, timeout_s, security) for each in places]


def _of_both(rows: Sequence[Row], brokers: Sequence[dict[Listener, Target]]) -> list[Row]:
    return [row for row in rows if all(row.case.listener in each for each in brokers)]


def _exit_by(outcomes: Sequence[Outcome]) -> None:
    if any(each.verdict.is_finding for each in outcomes):
        raise typer.Exit(_FAILED)


class _Refused(Exception):
    """The command line asks for something that cannot be done; the text is one line."""


_REFUSALS: Final = (_Refused, UnknownProfile, Unreachable, UnreadableRecording, UnusableConfig)


def _security(command_config: Path | None) -> Security:
    if command_config is None:
        return Security()
    security, ignored = read_client_config(command_config)
    if ignored:
        named = ", ".join(ignored)
        typer.echo(f"kraft-wire conform: {command_config}: ignored: {named}", err=True)
    return security


def _check_compares(compare: tuple[str, str] | None) -> None:
    if compare is None:
        raise _Refused("--random needs --compare A B: it needs another broker to compare with")


def _recorded(compare: tuple[str, str] | None, replay: Path | None) -> Recording | None:
    if compare is not None and replay is not None:
        raise _Refused("--compare names two brokers, and --replay is one")
    return None if replay is None else Recording.read(replay)


def _rows(cases: Sequence[Case], profile: str, only: Sequence[str]) -> list[Row]:
    rows = rows_of(cases, read_profile(profile), only)
    if not rows:
        raise _Refused(f"no case of profile {profile} matches {' '.join(only)}")
    return rows


def _place(bootstrap_server: str | None, bootstrap_controller: str | None) -> str:
    if bootstrap_server is None and bootstrap_controller is None:
        return os.environ.get("KRAFT_WIRE_BOOTSTRAP_SERVER") or "127.0.0.1:9092"
    controller = "" if bootstrap_controller is None else f",{bootstrap_controller}"
    return f"{bootstrap_server or ''}{controller}"


def _targets(place: str, timeout_s: float, security: Security) -> dict[Listener, Target]:
    """Connect to `BROKER`, `BROKER,CONTROLLER` or `,CONTROLLER`."""
    broker, comma, controller = place.partition(",")
    addresses = {}
    if broker or not comma:
        addresses[Listener.BROKER] = broker
    if comma:
        addresses[Listener.CONTROLLER] = controller
    return {
        listener: learn_target(split_address(text), timeout_s, security)
        for listener, text in addresses.items()
    }


def _run(
    rows: Sequence[Row],
    targets: dict[Listener, Target],
    parallel: int,
    keeps_exchanges: bool,
    answers: Answers | None,
) -> list[Outcome]:
    progress = _Progress(len(rows))
    outcomes = run_rows(
        rows,
        targets,
        parallel=parallel,
        keeps_exchanges=keeps_exchanges,
        on_outcome=progress.count,
        answers=answers,
    )
    progress.end()
    return outcomes


def _tell_differences(left: Recording, right: Recording, json: Path | None) -> None:
    found = differences(left, right)
    for line in comparison_text(found, left.about, right.about):
        typer.echo(line)
    _write(json, lambda: comparison_json(found, left.about, right.about))
    if found:
        raise typer.Exit(_FAILED)


def _list(rows: Sequence[Row]) -> None:
    listed: dict[str, tuple[Case, list[int]]] = {}
    for row in rows:
        listed.setdefault(row.case.name, (row.case, []))[1].append(row.version)
    for name, (case, versions) in listed.items():
        span = f"{versions[0]}-{versions[-1]}" if len(versions) > 1 else str(versions[0])
        typer.echo(f"{name:45} {span:>6}  {case.expectation}  [{case.source}]")
    typer.echo(f"{len(listed)} cases, {len(rows)} rows")


def _write(path: Path | None, report: Callable[[], str]) -> None:
    if path is not None:
        path.write_text(report(), encoding="utf-8")


class _Progress:
    """One line on a terminal's standard error; without a terminal nothing is written."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._done = 0
        self._failed = 0
        self._is_shown = sys.stderr.isatty()

    def count(self, outcome: Outcome) -> None:
        """Count one outcome."""
        self._done += 1
        self._failed += outcome.verdict.is_finding
        if self._is_shown:
            counted = f"\r{self._done} of {self._rows} rows, {self._failed} failed "
            typer.echo(counted, nl=False, err=True)

    def end(self) -> None:
        """End the line."""
        if self._is_shown:
            typer.echo("", err=True)
