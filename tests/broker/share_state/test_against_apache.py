"""Random stories of calls, told to our share coordinator's shard and to Apache's own class."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.coordination.log import CoordinatorRecord
from kraft_wire.broker.settings import BrokerSettings
from kraft_wire.broker.share_persister import (
    InitialShareState,
    PersisterResult,
    SharePartitionKey,
    ShareStateWrite,
)
from kraft_wire.broker.share_state.batch_merging import merged_batches
from kraft_wire.broker.share_state.calls import CallKind, StateCall
from kraft_wire.broker.share_state.coordinator_requests import request_of, results_of
from kraft_wire.broker.share_state.environment import ShareStateEnvironment
from kraft_wire.broker.share_state.shard import ShareStateShard
from kraft_wire.model import LeaderEpoch, Offset, Uuid, uuid_to_text
from kraft_wire.settings.node_settings import NodeSettings
from kraft_wire.wire.generated.registry import message_table
from kraft_wire.wire.json_form import message_from_json, message_to_json
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record
from kraft_wire.wire.records.record_batch import RecordBatch
from tests.broker.share_state.apache_states import ApacheStates
from tests.broker.share_state.list_log import ListLog
from tests.broker.share_state.sharing import batch

pytestmark = pytest.mark.java

FIRST = Uuid(b"first topic's id")
TOPICS = {FIRST: 2, Uuid(b"other topic's id"): 1}
NOWHERE = Uuid(b"no topic has it.")
COLD_MS = 10_000
STEPS = 600
MERGES = 20_000


class Story:
    """A seeded run of steps on both sides."""

    def __init__(self, seed: int, apache: ApacheStates) -> None:
        self.random = random.Random(seed)
        self.apache = apache
        self.updates = self.random.choice([0, 1, 3, 500])
        self.now_ms = 1_000_000
        self.log = ListLog()
        settings = NodeSettings(
            {
                "share.coordinator.snapshot.update.records.per.snapshot": str(self.updates),
                "share.coordinator.cold.partition.snapshot.interval.ms": str(COLD_MS),
            }
        )
        self.env = ShareStateEnvironment(
            settings=lambda: BrokerSettings.of(settings),
            has_partition=lambda key: key.partition < TOPICS.get(key.topic_id, 0),
            delete_records=lambda partition, offset: None,
        )
        self.shard = self._new_shard()
        self.is_in_one_order = True
        """Whether both logs have the same records at the same offsets."""
        apache.ask(
            {
                "step": "start",
                "updates": self.updates,
                "coldMs": COLD_MS,
                "topics": {uuid_to_text(each): count for each, count in TOPICS.items()},
            }
        )

    def _new_shard(self) -> ShareStateShard:
        return ShareStateShard(self.log, self.env)  # type: ignore[arg-type]  # the same methods

    @property
    def at(self) -> ClockReading:
        return ClockReading(self.now_ms, self.now_ms)

    def step(self) -> None:
        self.now_ms += self.random.choice([0, 1, 50, 3_000])
        drawn = self.random.random()
        if drawn < 0.9:
            self.call(self._drawn_call())
        elif drawn < 0.95:
            self.compare(self.log_of(lambda: self.shard.clean_up(self.at)), self._ask("cold"))
        elif drawn < 0.97:
            topic_id = self.random.choice([*TOPICS])
            ours = self.log_of(lambda: self.shard.topics_deleted({topic_id: "t"}, self.at))
            self.compare(ours, self._ask("topic", topic=uuid_to_text(topic_id)))
        else:
            self.load()

    def _ask(self, step: str, **more: Any) -> dict[str, Any]:
        return self.apache.ask({"step": step, "nowMs": self.now_ms, **more})

    def _drawn_call(self) -> StateCall:
        draw = self.random
        topic_id = draw.choice([*[FIRST] * 8, *TOPICS, NOWHERE])
        partition = draw.choice([0, 0, 0, 1, 1, 2, -1])
        key = SharePartitionKey(draw.choice(["g", "g", "h:i"]), topic_id, partition)
        kind = draw.choice(
            [
                CallKind.INITIALIZE,
                *[CallKind.WRITE] * 8,
                *[CallKind.READ] * 3,
                CallKind.SUMMARY,
                *[CallKind.DELETE] * (draw.random() < 0.3),
            ]
        )
        return StateCall(kind, key, self._argument(kind))

    def _argument(self, kind: CallKind) -> Any:
        draw = self.random
        if kind is CallKind.INITIALIZE:
            return InitialShareState(draw.randrange(-1, 4), Offset(draw.choice([-1, 0, 3, 8])))
        if kind in (CallKind.READ, CallKind.SUMMARY):
            return LeaderEpoch(draw.choice([-1, -1, 0, 1, 2, 3]))
        if kind is CallKind.DELETE:
            return None
        return ShareStateWrite(
            draw.choice([-1, 2, 3, 3]),
            LeaderEpoch(draw.choice([-1, 1, 2, 3, 3])),
            Offset(draw.choice([-1, -1, 0, 2, 5, 9])),
            draw.randrange(-1, 5),
            drawn_batches(draw, draw.choice([0, 1, 1, 2, 4])),
        )

    def call(self, call: StateCall) -> None:
        results: list[PersisterResult] = []
        before = len(self.log.records)
        self.shard.call(call, self.at, lambda result, _: results.append(result))
        request = request_of(call.kind, call.key.group_id, [call])
        version = request.MAX_VERSION
        theirs = self._ask(call.kind.value, request=message_to_json(request, version))
        table = message_table(request.NAME.replace("Request", "Response"))
        decoded = message_from_json(table, theirs["response"], version)
        (expected,) = results_of(decoded).values()
        assert shown(results[0]) == shown(expected), call
        self.compare(self.log.records[before:], theirs, call)

    def log_of(self, step: Any) -> list[CoordinatorRecord]:
        before = len(self.log.records)
        step()
        return self.log.records[before:]

    def compare(
        self, ours: Sequence[CoordinatorRecord], theirs: dict[str, Any], context: Any = None
    ) -> None:
        """Compare records; those that nobody asked for have Java's order over there."""
        found = [[r.key.hex(), None if r.value is None else r.value.hex()] for r in ours]
        key = str
        assert sorted(found, key=key) == sorted(theirs["records"], key=key), context
        self.is_in_one_order = self.is_in_one_order and len(found) < 2
        if self.is_in_one_order:
            assert (self.shard.table.needed.first_needed() or -1) == theirs["needed"], context

    def load(self) -> None:
        """Make both sides anew from their logs, and look at every state."""
        self.shard = self._new_shard()
        for offset, (key, value) in enumerate(self.log.records):
            data = build_batch([Record(key, value)], base_offset=offset)
            self.shard.replay(RecordBatch(memoryview(data)))
        self._ask("load")
        for key in list(self.shard.table.entries):
            self.call(StateCall(CallKind.READ, key, LeaderEpoch(-1)))
            self.call(StateCall(CallKind.SUMMARY, key, LeaderEpoch(-1)))


def shown(result: PersisterResult) -> Any:
    """A result without what a response of Read does not have."""
    state = result.state
    if state is not None:
        state = state._replace(leader_epoch=LeaderEpoch(0), batches=list(state.batches))
    return result.error, result.error_message, state


def drawn_batches(draw: random.Random, count: int) -> list[Any]:
    drawn = []
    for _ in range(count):
        first = draw.randrange(20)
        last = first + draw.choice([0, 0, 1, 3, 9])
        drawn.append(batch(first, last, draw.choice([0, 0, 2, 4]), draw.randrange(1, 4)))
    return drawn


@pytest.fixture(scope="module")
def apache() -> Iterator[ApacheStates]:
    with ApacheStates() as judge:
        yield judge


@pytest.mark.parametrize("seed", range(6))
def test_answers_and_records_are_those_of_apache(seed: int, apache: ApacheStates) -> None:
    """932-COORD-03, 932-COORD-04, 932-COORD-05, 932-COORD-06, 932-COORD-07, 932-COORD-08,
    932-COORD-09, 932-COORD-10, 932-COORD-11, 932-COORD-13, 932-COORD-14, 932-COORD-15.
    """
    story = Story(seed, apache)
    for _ in range(STEPS):
        story.step()
    story.load()


def test_batches_are_merged_as_by_apache(apache: ApacheStates) -> None:
    """932-COORD-12."""
    draw = random.Random(1)
    for _ in range(MERGES):
        stored = drawn_batches(draw, draw.randrange(8))
        new = drawn_batches(draw, draw.randrange(5))
        start = draw.choice([-1, 0, 4, 11])
        step = {"step": "combine", "stored": stored, "new": new, "start": start}
        theirs = [batch(*each) for each in apache.ask(step)["batches"]]
        assert list(merged_batches(stored, new, start)) == theirs, step
