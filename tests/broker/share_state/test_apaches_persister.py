"""Apache's own client of share coordinators against a node of ours and one of Apache's."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from kraft_wire.broker.share_persister import (
    InitialShareState,
    SharePartitionKey,
    ShareStateWrite,
)
from kraft_wire.broker.share_state.calls import CallKind, StateCall
from kraft_wire.broker.share_state.coordinator_requests import request_of
from kraft_wire.model import LeaderEpoch, Offset
from kraft_wire.wire.generated.error_code import ErrorCode as E
from kraft_wire.wire.json_form import message_to_json
from tests.apache.brokers import NAMES, broker_process
from tests.apache.java_process import java_command
from tests.broker.groups.doors import SocketDoor
from tests.broker.share_state.sharing import batch
from tests.waiting import HANG_S

pytestmark = [pytest.mark.java, pytest.mark.slow]


@contextmanager
def apaches_persister(bootstrap: str) -> Iterator[Any]:
    """A function that makes calls of one kind, and returns their results."""
    host, _, port = bootstrap.rpartition(":")
    process = subprocess.Popen(
        java_command("judge.SharePersister", [host, port]),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    to_it, from_it = process.stdin, process.stdout

    def results(kind: CallKind, arguments: dict[SharePartitionKey, Any]) -> list[dict[str, Any]]:
        calls = [StateCall(kind, key, argument) for key, argument in arguments.items()]
        request = request_of(kind, calls[0].key.group_id, calls)
        shown = message_to_json(request, request.MAX_VERSION)
        to_it.write(json.dumps({"kind": kind.value, "request": shown}) + "\n")
        to_it.flush()
        line = from_it.readline()
        assert line, "Apache's persister ended"
        found: list[dict[str, Any]] = json.loads(line)
        return sorted(found, key=lambda each: each["partition"])

    try:
        yield results
    finally:
        to_it.close()
        try:
            process.wait(timeout=HANG_S)
        finally:
            process.kill()
            process.wait()
            from_it.close()


def told(bootstrap: str) -> list[Any]:
    """What Apache's persister gets for a story of calls, the first of which makes the topic."""
    with closing(SocketDoor(bootstrap)) as door:
        topic_id = door.create_topic("t")
    with apaches_persister(bootstrap) as results:
        keys = [SharePartitionKey(f"g:{n}", topic_id, 0) for n in range(3)]
        answers = []
        for key in keys:
            start = InitialShareState(3, Offset(5))
            answers.append(results(CallKind.INITIALIZE, {key: start}))
        for number, key in enumerate(keys):
            write = ShareStateWrite(
                3, LeaderEpoch(0), Offset(6), number, [batch(6, 9, 2, 1), batch(8, 12, 0, 2)]
            )
            answers.append(results(CallKind.WRITE, {key: write}))
            answers.append(results(CallKind.READ, {key: LeaderEpoch(4)}))
            answers.append(results(CallKind.SUMMARY, {key: LeaderEpoch(4)}))
            answers.append(results(CallKind.WRITE, {key: write}))
            answers.append(results(CallKind.INITIALIZE, {key: InitialShareState(2, Offset(0))}))
            answers.append(results(CallKind.DELETE, {key: None}))
            answers.append(results(CallKind.READ, {key: LeaderEpoch(4)}))
            answers.append(results(CallKind.SUMMARY, {key: LeaderEpoch(4)}))
    return answers


def test_apaches_persister_gets_the_same_from_both_makes(tmp_path: Path) -> None:
    """932-COORD-01, 932-COORD-02, 932-COORD-16."""
    answers = []
    for name in NAMES:
        directory = tmp_path / name
        directory.mkdir()
        with broker_process(name, directory) as broker:
            answers.append(told(broker.bootstrap))
    assert answers[0] == answers[1]
    errors = [each["error"] for results in answers[1] for each in results]
    assert errors == [
        *[E.NONE] * 3,
        *[
            *(E.NONE, E.NONE, E.NONE, E.FENCED_LEADER_EPOCH, E.FENCED_STATE_EPOCH),
            *(E.NONE, E.INVALID_REQUEST, E.NONE),
        ]
        * 3,
    ]
