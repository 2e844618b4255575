"""Leader epochs: logs of several of them are looked up and found diverging as by Apache.

Each start of a broker begins a new epoch; Apache's passes over one in between, so that epochs are
compared by their place in the log's history.
"""

from collections.abc import Iterator

import pytest

from kraft_wire.wire.generated.fetch import FetchRequest
from kraft_wire.wire.generated.list_offsets import ListOffsetsRequest
from kraft_wire.wire.generated.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kraft_wire.wire.records.record_batch import parse_batches
from tests.apache.differential.comparing import differences
from tests.apache.differential.fetch_probes import topic, wanted
from tests.apache.differential.offset_lookup_probes import TIMES, list_offsets
from tests.apache.differential.side import NOW_MS, Side, batch
from tests.apache.node import ApacheNode
from tests.server_process import ServerProcess

pytestmark = pytest.mark.java

TOPIC = "epochs"
STARTS = 3
BATCHES_PER_START = 2
EPOCH_FIELDS = {"leaderEpoch", "epoch", "currentLeaderEpoch"}


def history(broker: ApacheNode | ServerProcess) -> Side:
    """A topic that was written to in three epochs, and a broker that has begun a fourth."""
    for number in range(STARTS):
        side = Side(broker.bootstrap, "diff")
        if number:
            side.await_topic(TOPIC)
        else:
            side.topic(TOPIC)
        for step in range(BATCHES_PER_START):
            stamp = NOW_MS + 1_000 * (number * BATCHES_PER_START + step)
            assert side.produce(side.name(TOPIC), batch(b"a", b"b", timestamp=stamp)) == 0
        side.close()
        broker.restart()
    side = Side(broker.bootstrap, "diff")
    side.await_topic(TOPIC)
    return side


def epochs_of(side: Side) -> list[int]:
    """The epochs in which records were written, then the present one."""
    request = FetchRequest(
        max_bytes=1 << 20, session_epoch=-1, topics=[topic(side, 12, side.name(TOPIC), wanted())]
    )
    (answer,) = side.prepare(request, 12).responses[0].partitions
    written = [one.partition_leader_epoch for one in parse_batches(answer.records)]
    latest = side.leader_epoch(side.name(TOPIC))
    return [*dict.fromkeys(written), latest]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Side, Side]]:
    """Both brokers after their histories."""
    apaches, mine = tmp_path_factory.mktemp("apache"), tmp_path_factory.mktemp("ours")
    with ApacheNode(apaches) as apache, ServerProcess(mine) as server:
        theirs, ours = history(apache), history(server)
        yield theirs, ours
        theirs.close()
        ours.close()


def asked(side: Side, version: int) -> list[object]:
    """Everything about epochs, in one version of Fetch."""
    side.transcript.clear()
    name, epochs = side.name(TOPIC), epochs_of(side)
    assert len(epochs) == STARTS + 1
    places = {epoch: f"epoch {place}" for place, epoch in enumerate(epochs)}
    for place, epoch in enumerate(epochs):
        for offset in (0, 3, 4, 5, 8, 11, 12, 13, 20):
            part = wanted(0, offset, last_fetched_epoch=epoch, partition_max_bytes=1)
            request = FetchRequest(
                max_wait_ms=0,
                max_bytes=0,
                session_epoch=-1,
                topics=[topic(side, version, name, part)],
            )
            side.ask(request, version, f"epoch {place} at {offset}")
        partition = OffsetForLeaderPartition(partition=0, leader_epoch=epoch)
        ends = OffsetForLeaderTopic(topic=name, partitions=[partition])
        side.ask(OffsetForLeaderEpochRequest(topics=[ends]), 4, f"end of epoch {place}")
        part = wanted(0, 12, current_leader_epoch=epoch)
        request = FetchRequest(session_epoch=-1, topics=[topic(side, version, name, part)])
        side.ask(request, version, f"current epoch {place}")
        list_offsets(side, 7, f"latest, current epoch {place}", (name, 0, -1, epoch))
    for timestamp in TIMES:
        list_offsets(side, 11, f"at {timestamp}", (name, 0, timestamp, -1))
    assert ListOffsetsRequest.MAX_VERSION == 11
    return [_placed(exchange, places) for exchange in side.transcript]


def _placed(value: object, places: dict[int, str], key: str = "") -> object:
    """The same with epochs as places in the history; of records only how many bytes there are."""
    if isinstance(value, dict):
        return {name: _placed(inner, places, name) for name, inner in value.items()}
    if key == "records" and isinstance(value, list):
        return len(value)
    if isinstance(value, list | tuple):
        return [_placed(inner, places, key) for inner in value]
    return places.get(value, value) if key in EPOCH_FIELDS and isinstance(value, int) else value


@pytest.mark.parametrize("version", [12, 13, 16, 18])
def test_epochs_are_told_alike_after_restarts(both: tuple[Side, Side], version: int) -> None:
    theirs, ours = both
    assert differences(asked(theirs, version), asked(ours, version)) == []
