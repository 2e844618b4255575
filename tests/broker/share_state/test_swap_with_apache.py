"""States of share partitions over a change of make, and calls to a real coordinator of Apache's."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.coordination.topic import key_partition
from kraft_wire.broker.share_persister import (
    InitialShareState,
    PersisterResult,
    SharePartitionKey,
    SharePartitionState,
    ShareStateWrite,
)
from kraft_wire.broker.share_state.coordinator_keys import coordinator_key
from kraft_wire.broker.share_state.persister import CoordinatedPersister
from kraft_wire.model import LeaderEpoch, Offset, Uuid
from kraft_wire.wire.generated.error_code import ErrorCode as E
from tests.apache.node import ApacheNode
from tests.broker.groups.doors import SocketDoor
from tests.broker.groups.requests import moments
from tests.broker.share_state.sharing import STATE_TOPIC, TOPIC, ShareCalls, batch, stored
from tests.broker.share_state.test_persister import MiddleChance
from tests.broker.small_broker import broker_image, image_of, partition_image
from tests.server_process import ServerProcess

pytestmark = [pytest.mark.java, pytest.mark.slow]

SETTINGS = {
    "share.coordinator.state.topic.num.partitions": "3",
    "share.coordinator.snapshot.update.records.per.snapshot": "3",
}
GROUPS = [f"g{number}" for number in range(6)]


class ShareSocket(ShareCalls):
    """A share coordinator on a socket."""

    def __init__(self, address: str, topic_id: Uuid | None = None) -> None:
        self.door = SocketDoor(address)
        self.topic_id = topic_id or self.door.create_topic(TOPIC)
        for partition in range(3):
            self._await(next(g for g in _names() if self._number(g) == partition))

    def _number(self, group: str) -> int:
        return key_partition(coordinator_key(self.key(0, group)), 3)

    def _await(self, group: str) -> None:
        """Wait until a partition of the state topic is led and loaded."""
        key = coordinator_key(self.key(0, group))
        for _ in moments():
            if self.find(key).error_code == 0 and self.summary().error_code == 0:
                return
        raise AssertionError("the coordinator does not come")

    def send(self, request: Any, version: int) -> Any:
        return self.door.send(request, version)

    def close(self) -> None:
        self.door.close()


def _names() -> Any:
    return (f"warm-{number}" for number in count())


def write_more(node: ShareSocket, offsets: range) -> None:
    for offset in offsets:
        state = 2 if offset % 3 else 0
        written = node.write(0, (offset, offset, state, 1), leader=5, start=0, complete=offset)
        assert written.error_code == 0, written


def told(node: ShareSocket) -> list[Any]:
    """What a node says of the share partition."""
    read, summary = node.read(), node.summary()
    return [
        (read.error_code, read.state_epoch, read.start_offset, stored(read.state_batches)),
        (summary.error_code, summary.state_epoch, summary.leader_epoch, summary.start_offset),
        summary.delivery_complete_count,
        node.write(leader=4).error_code,
        node.initialize(epoch=2).error_code,
    ]


def test_states_go_on_under_apache_and_come_back(tmp_path: Path) -> None:
    """932-COORD-09: each make reads the other's log, snapshots and updates."""
    directory = tmp_path / "ours"
    directory.mkdir()
    ours = ServerProcess(directory, overrides=SETTINGS | {"num.partitions": "1"})
    apache = ApacheNode(tmp_path / "apache", overrides=SETTINGS | {"log.dirs": str(ours.data)})
    try:
        ours.start()
        with closing(ShareSocket(ours.bootstrap)) as node:
            topic_id = node.topic_id
            assert node.initialize(epoch=3, start=0).error_code == 0
            assert node.read(leader=5).error_code == 0
            write_more(node, range(8))
            before = told(node)
        ours.stop()
        apache.configure()
        apache.start()
        with closing(ShareSocket(apache.bootstrap, topic_id)) as node:
            assert told(node) == before
            write_more(node, range(8, 20))
            after = told(node)
        apache.stop()
        ours.start()
        with closing(ShareSocket(ours.bootstrap, topic_id)) as node:
            assert told(node) == after
            assert node.delete().error_code == 0
        ours.stop()
        apache.start()
        with closing(ShareSocket(apache.bootstrap, topic_id)) as node:
            assert node.read().error_code == E.INVALID_REQUEST
        apache.stop()
    finally:
        ours.kill()
        apache.kill()


class ToApache:
    """Our persister, whose calls to broker 2 go to a node of Apache's."""

    def __init__(self, node: ShareSocket) -> None:
        self.node = node
        led = [partition_image(n, leader=2, replicas=(2,)) for n in range(3)]
        image = image_of({STATE_TOPIC: led}, [broker_image(1), broker_image(2)])
        self.at = ClockReading(0, 0)
        self.persister = CoordinatedPersister(
            1, lambda: image, MiddleChance(), lambda *_: None, lambda _: None
        )

    def results(self, call: Any, *arguments: Any) -> Mapping[SharePartitionKey, PersisterResult]:
        """Make a call; return what comes back once all requests are answered."""
        found: list[Mapping[SharePartitionKey, PersisterResult]] = []
        call(*arguments, self.at, lambda results, _: found.append(results))
        requests = self.persister.client().destinations()[2]
        while (request := requests.request(1, 0)) is not None:
            response = self.node.send(request, request.MAX_VERSION).response
            requests.answered(response, *self.at)
        (results,) = found
        return results


def test_a_coordinator_of_apaches_understands_our_calls(tmp_path: Path) -> None:
    """932-COORD-16: of several groups, with its errors and its words."""
    apache = ApacheNode(tmp_path / "apache", overrides=SETTINGS)
    with apache, closing(ShareSocket(apache.bootstrap)) as node:
        side = ToApache(node)
        persister = side.persister
        keys = [node.key(0, group) for group in GROUPS]
        done = dict.fromkeys(keys, PersisterResult(E.NONE))
        start = InitialShareState(4, Offset(2))
        assert side.results(persister.initialize, dict.fromkeys(keys, start)) == done
        write = ShareStateWrite(4, LeaderEpoch(0), Offset(3), 1, [batch(3, 5, 2, 1)])
        assert side.results(persister.write, dict.fromkeys(keys, write)) == done
        state = SharePartitionState(4, LeaderEpoch(7), Offset(3), -1, [batch(3, 5, 2, 1)])
        read = dict.fromkeys(keys, PersisterResult(E.NONE, None, state))
        assert side.results(persister.read, dict.fromkeys(keys, LeaderEpoch(7))) == read
        summary = state._replace(delivery_complete_count=1, batches=())
        found = side.results(persister.read_summary, dict.fromkeys(keys, LeaderEpoch(7)))
        assert found == dict.fromkeys(keys, PersisterResult(E.NONE, None, summary))
        fenced = side.results(persister.write, {keys[0]: write})[keys[0]]
        assert fenced.error == E.FENCED_LEADER_EPOCH
        assert fenced.error_message == (
            "Error in write state RPC. The leader epoch in the request is older than the epoch"
            " on the broker."
        )
        assert side.results(persister.delete, keys) == done
        unread = side.results(persister.read, {keys[0]: LeaderEpoch(8)})[keys[0]]
        assert unread.error == E.INVALID_REQUEST
        assert unread.error_message == (
            "Error in read state RPC. Read operation on uninitialized share partition not allowed."
        )
