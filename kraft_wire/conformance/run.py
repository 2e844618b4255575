"""Running cases: every case in every version is one row, judged by itself."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

from kraft_wire.conformance.answers import AnswerMismatch, Answers
from kraft_wire.conformance.case import Case, Listener
from kraft_wire.conformance.connection import Connection
from kraft_wire.conformance.profile import Profile
from kraft_wire.conformance.subject import Subject
from kraft_wire.conformance.target import Target
from kraft_wire.conformance.verdict import (
    Difference,
    Exchange,
    Mismatch,
    NothingYet,
    NotSupported,
    Outcome,
    Verdict,
)
from kraft_wire.wire.generated.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from kraft_wire.wire.records.corruption import CorruptRecordBatch

__all__ = ["Row", "rows_of", "run_rows"]

_DELETED_AT_ONCE: Final = 100

_ID_TRIES: Final = 100
_ID_PAUSE_S: Final = 0.05
"""A broker that has just begun has no block of ids yet."""
_LATE_MAX: Final = 2
"""Times that a broker may be late with what a row expects (`NothingYet`)."""

_UNREADABLE: Final = (CorruptRecordBatch, LookupError, ValueError, TypeError, AttributeError)
"""Errors of a case on a response with a short list, an unexpected null, or broken records."""


@dataclass(frozen=True, slots=True)
class Row:
    """One case in one version."""

    case: Case
    version: int

    @property
    def name(self) -> str:
        """Return `api.case/version`."""
        return f"{self.case.name}/{self.version}"


def rows_of(cases: Iterable[Case], profile: Profile, only: Sequence[str] = ()) -> list[Row]:
    """Return the rows of the versions that the profile's release serves.

    `only` holds patterns of `case`, `api.case` or `api.case/version`; without any, all rows count.
    """
    return [
        row
        for each in cases
        for row in (Row(each, version) for version in profile.versions_of(each))
        if not only or any(_matches(row, pattern) for pattern in only)
    ]


def _matches(row: Row, pattern: str) -> bool:
    names = (row.name, row.case.name, row.case.name.partition(".")[0])
    return any(fnmatchcase(name, pattern) for name in names)


def run_rows(
    rows: Sequence[Row],
    targets: dict[Listener, Target],
    *,
    parallel: int = 1,
    keeps_exchanges: bool = False,
    on_outcome: Callable[[Outcome], None] = lambda _: None,
    answers: Answers | None = None,
) -> list[Outcome]:
    """Judge all rows, `parallel` at a time, and delete the topics that they made.

    Without `answers` a row is judged by its case's checks alone.

    A row whose listener is not a target is not supported. The exchanges of rows that passed are
    kept only with `keeps_exchanges`. Outcomes are in the order of the rows; `on_outcome`
    is called with each outcome at once, from one thread at a time.
    """
    made_topics: list[str] = []

    def judged(row: Row) -> Outcome:
        target = targets.get(row.case.listener)
        if target is None:
            return _not_supported(row, f"no address of a {row.case.listener} listener was given")
        return _judged(row, target, made_topics, answers, keeps_exchanges=keeps_exchanges)

    if Listener.BROKER in targets:
        _use_a_producer_id(targets[Listener.BROKER])
    outcomes = []
    try:
        with ThreadPoolExecutor(max_workers=parallel) as workers:
            for outcome in workers.map(judged, rows):
                on_outcome(outcome)
                outcomes.append(outcome)
    finally:
        if Listener.BROKER in targets:
            _delete_topics(targets[Listener.BROKER], list(dict.fromkeys(made_topics)))
    return outcomes


def _judged(
    row: Row,
    target: Target,
    made_topics: list[str],
    answers: Answers | None,
    *,
    keeps_exchanges: bool,
) -> Outcome:
    first, last = target.versions.get(row.case.api_key, (0, -1))
    if not first <= row.version <= last:
        offered = f"versions {first} to {last}" if last >= first else "no version"
        return _not_supported(row, f"ApiVersions offers {offered} of {row.case.api}")
    subject = Subject(target, row.name)
    started = time.monotonic()
    verdict, expected, seen, path = Verdict.PASSED, row.case.expectation, "", ""
    try:
        _judge(row, subject)
        if answers is not None:
            answers.judge(row.case.name, row.version, target, subject.exchanges)
    except AnswerMismatch as mismatch:
        verdict, seen, path = Verdict.DIFFERS, mismatch.seen, mismatch.path
        expected = mismatch.expected
        if not keeps_exchanges:
            _end_at(subject.exchanges, mismatch.exchange)
    except Mismatch as mismatch:
        verdict = Verdict.DIFFERS if isinstance(mismatch, Difference) else Verdict.FAILED
        expected, seen, path = mismatch.expected, mismatch.seen, mismatch.path
    except NotSupported as reason:
        verdict, seen = Verdict.NOT_SUPPORTED, str(reason)
    except _UNREADABLE as error:
        verdict = Verdict.FAILED
        seen = f"a response that the case cannot follow: {type(error).__name__}: {error}"
    except OSError as error:
        verdict, seen = Verdict.ERROR, f"{type(error).__name__}: {error}"
    finally:
        subject.close()
        made_topics += subject.made_topics
    seconds = time.monotonic() - started
    is_kept = keeps_exchanges or verdict is not Verdict.PASSED
    exchanges = tuple(subject.exchanges) if is_kept else ()
    return Outcome(row.case.name, row.version, verdict, seconds, expected, seen, path, exchanges)


def _judge(row: Row, subject: Subject) -> None:
    """Run a case; again while the broker may only have been late. Errors: those of a case."""
    for _ in range(_LATE_MAX):
        try:
            return row.case.judge(subject, row.version)
        except NothingYet:
            subject.begin_again()
    return row.case.judge(subject, row.version)


def _end_at(exchanges: list[Exchange], number: int) -> None:
    """Remove the exchanges after the failed one, so that reports show the failed one."""
    places = [at for at, each in enumerate(exchanges) if not each.is_preparation]
    del exchanges[places[number] + 1 :]


def _not_supported(row: Row, reason: str) -> Outcome:
    name, expected = row.case.name, row.case.expectation
    return Outcome(name, row.version, Verdict.NOT_SUPPORTED, 0.0, expected, reason)


def _use_a_producer_id(target: Target) -> None:
    """Take a producer id, so that no row gets 0, the first of a cluster, which can mean none."""
    version = min(target.versions.get(InitProducerIdRequest.API_KEY, (0, -1))[1], 1)
    if version >= InitProducerIdRequest.MIN_VERSION:
        with suppress(Mismatch, OSError), _connected(target) as connection:
            request = InitProducerIdRequest(transactional_id=None)
            for _ in range(_ID_TRIES):
                answer = connection.ask(request, version, InitProducerIdResponse)
                if answer.error_code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                    return
                time.sleep(_ID_PAUSE_S)


def _delete_topics(target: Target, names: Sequence[str]) -> None:
    """Delete topics; a broker that refuses or died keeps them, which fails no case."""
    version = min(target.versions.get(DeleteTopicsRequest.API_KEY, (0, -1))[1], 6)
    if version < DeleteTopicsRequest.MIN_VERSION or not names:
        return
    with suppress(Mismatch, OSError), _connected(target) as connection:
        for start in range(0, len(names), _DELETED_AT_ONCE):
            chosen = list(names[start : start + _DELETED_AT_ONCE])
            request = DeleteTopicsRequest(timeout_ms=int(target.timeout_s * 1000))
            if version >= 6:
                request.topics = [DeleteTopicState(name=each) for each in chosen]
            else:
                request.topic_names = chosen
            connection.ask(request, version, DeleteTopicsResponse)


@contextmanager
def _connected(target: Target) -> Iterator[Connection]:
    """Connect for requests outside of rows. Errors: those of a connection."""
    connection = Connection(target.address, target.timeout_s, lambda _: None, target.security)
    try:
        yield connection
    finally:
        connection.close()
