"""Transactions survive a change of the broker: from ours to Apache's, and back."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from kraft_wire.wire.generated.create_topics import CreatableTopic, CreateTopicsRequest
from kraft_wire.wire.generated.describe_transactions import DescribeTransactionsRequest
from kraft_wire.wire.generated.error_code import ErrorCode as E
from tests.broker.groups.doors import SocketDoor
from tests.broker.groups.test_swap_with_apache import ApacheOver
from tests.broker.transactions.coordinating import TOPIC, Producer, find_coordinator
from tests.broker.transactions.stories import done
from tests.server_process import ServerProcess

pytestmark = [pytest.mark.java, pytest.mark.slow]

ATTEMPTS = 600


@contextmanager
def serving(node: Any) -> Iterator[Any]:
    """A broker over the directory, as a door."""
    node.start()
    try:
        with closing(SocketDoor(node.bootstrap)) as door:
            yield door
        node.stop()
    finally:
        node.kill()


def until(is_so: Callable[[], bool]) -> None:
    for _ in range(ATTEMPTS):
        if is_so():
            return
        time.sleep(0.05)
    raise AssertionError("it does not come")


def state_of(door: Any, name: str) -> str:
    request = DescribeTransactionsRequest(transactional_ids=[name])
    (state,) = door.send(request, 0).response.transaction_states
    return str(state.transaction_state) if state.error_code == E.NONE else E(state.error_code).name


def loaded(door: Any, *names: str) -> None:
    """Wait until the coordinator has the ids."""
    until(lambda: find_coordinator(door, names[0]).error_code == E.NONE)
    until(lambda: all(state_of(door, name)[0].isupper() for name in names))
    until(lambda: all("COORDINATOR" not in state_of(door, name) for name in names))


def test_open_and_ended_transactions_change_hands(tmp_path: Path) -> None:
    """Ours begins them, Apache's ends them and begins others, ours ends those."""
    (tmp_path / "ours").mkdir()
    (tmp_path / "apache").mkdir()
    ours = ServerProcess(tmp_path / "ours")
    with serving(ours) as door:
        topic = CreatableTopic(name=TOPIC, num_partitions=4, replication_factor=1)
        created = door.send(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7).response
        assert created.topics[0].error_code == E.NONE
        until(lambda: find_coordinator(door, "open").error_code == E.NONE)
        producers = {name: Producer(door, name) for name in ("open", "old", "done")}
        for producer in producers.values():
            until(lambda: producer.init() == E.NONE)  # noqa: B023  # waited for
        until(lambda: producers["open"].implicit(0, 1) == [E.NONE] * 2)
        assert producers["old"].add(2) == [E.NONE]
        assert producers["done"].implicit(3) == [E.NONE]
        former = (producers["done"].id, producers["done"].epoch)
        assert producers["done"].commit() == E.NONE
        until(lambda: state_of(door, "done") == "CompleteCommit")
    with serving(ApacheOver(tmp_path / "apache", ours.data)) as door:
        loaded(door, *producers)
        for producer in producers.values():
            producer.door = door
        states = [state_of(door, name) for name in producers]
        assert states == ["Ongoing", "Ongoing", "CompleteCommit"]
        assert producers["done"].end(identity=former) == E.NONE, "a retry over the change"
        assert producers["open"].commit() == E.NONE
        assert producers["old"].abort(4) == E.NONE
        assert done(lambda: producers["open"].implicit(2)) == [E.NONE]
        assert done(lambda: producers["old"].add(3)) == [E.NONE]
        epoch = producers["open"].epoch
    with serving(ours) as door:
        loaded(door, *producers)
        for producer in producers.values():
            producer.door = door
        states = [state_of(door, name) for name in producers]
        assert states == ["Ongoing", "Ongoing", "CompleteCommit"]
        assert producers["open"].abort() == E.NONE
        assert producers["open"].epoch == epoch + 1
        assert producers["old"].commit(4) == E.NONE
        until(lambda: state_of(door, "open") == "CompleteAbort")
        until(lambda: state_of(door, "old") == "CompleteCommit")
