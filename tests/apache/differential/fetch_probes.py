"""Fetch 4 to 18: where reading begins and ends, who may read, and what sessions answer.

Not here: long sequences of sessions, which `tests/broker/test_fetch_sessions_against_apache.py`
draws at random against Apache's own classes.
"""

from typing import Any

from kraft_wire.model import Uuid
from kraft_wire.wire.generated.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kraft_wire.wire.generated.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    ReplicaState,
)
from tests.apache.differential.probes import probe
from tests.apache.differential.side import STRANGER, Side, batch

FIRST_ID_VERSION = 13
FIRST_SESSION_VERSION = 7
FIRST_REPLICA_STATE_VERSION = 15


def wanted(index: int = 0, fetch_offset: int = 0, **more: Any) -> FetchPartition:
    """One partition of a request."""
    fields = {"partition_max_bytes": 1 << 20} | more
    return FetchPartition(partition=index, fetch_offset=fetch_offset, **fields)


def topic(
    side: Side, version: int, name: str, *partitions: FetchPartition, topic_id: Uuid | None = None
) -> FetchTopic:
    """A topic of a request, by name or, from version 13 on, by id."""
    if version < FIRST_ID_VERSION:
        return FetchTopic(topic=name, partitions=list(partitions))
    return FetchTopic(topic_id=topic_id or side.topic_id(name), partitions=list(partitions))


def forgotten(side: Side, version: int, name: str, *indexes: int) -> ForgottenTopic:
    """A topic that a session shall forget."""
    if version < FIRST_ID_VERSION:
        return ForgottenTopic(topic=name, partitions=list(indexes))
    return ForgottenTopic(topic_id=side.topic_id(name), partitions=list(indexes))


def fetch(
    side: Side, version: int, question: str, *topics: FetchTopic, replica_id: int = -1, **more: Any
) -> Any:
    """Ask; nothing waits unless it is said."""
    fields: dict[str, Any] = {
        "max_wait_ms": 0,
        "min_bytes": 0,
        "max_bytes": 1 << 24,
        "session_epoch": -1,
    }
    request = FetchRequest(topics=list(topics), **(fields | more))
    if version < FIRST_REPLICA_STATE_VERSION:
        request.replica_id = replica_id
    elif replica_id != -1:
        request.replica_state = ReplicaState(replica_id=replica_id)
    return side.ask(request, version, question)


@probe(FetchRequest)
def offsets(side: Side, version: int) -> None:
    name = side.filled("fetch")
    for offset in (0, 1, 7, 19, 20, 21, 1_000, -1, -2):
        fetch(side, version, f"offset {offset}", topic(side, version, name, wanted(0, offset)))
    fetch(side, version, "read committed", topic(side, version, name, wanted()), isolation_level=1)
    fetch(
        side, version, "no such isolation", topic(side, version, name, wanted()), isolation_level=7
    )
    for field in ("log_start_offset",):
        part = wanted(0, 3, **{field: 2})
        fetch(side, version, field, topic(side, version, name, part))


@probe(FetchRequest)
def sizes(side: Side, version: int) -> None:
    name = side.filled("fetch")
    for limit in (-1, 0, 1, 72, 73, 74, 150, 1_000):
        part = wanted(0, 3, partition_max_bytes=limit)
        fetch(side, version, f"of a partition {limit}", topic(side, version, name, part))
        asked = topic(side, version, name, wanted(0, 3))
        fetch(side, version, f"in all {limit}", asked, max_bytes=limit)
    two = side.filled("fetch-two")
    both = (topic(side, version, name, wanted()), topic(side, version, two, wanted()))
    for limit in (1, 100, 800, 1_000):
        fetch(side, version, f"of two {limit}", *both, max_bytes=limit)
    for offset in (2, 20, 99):
        behind = (topic(side, version, name, wanted(0, offset)), both[1])
        fetch(side, version, f"of two -1 from {offset}", *behind, max_bytes=-1)
    for least in (1, 100, 1_000_000):
        fetch(side, version, f"at least {least}", both[0], min_bytes=least, max_wait_ms=1)


@probe(FetchRequest)
def unknown_places(side: Side, version: int) -> None:
    name = side.filled("fetch")
    fetch(side, version, "partition 9", topic(side, version, name, wanted(9)))
    fetch(side, version, "partition -1", topic(side, version, name, wanted(-1)))
    for topic_id in (STRANGER, Uuid(bytes(16))):
        nowhere = topic(side, version, side.name("nowhere"), wanted(), topic_id=topic_id)
        fetch(side, version, f"topic {topic_id[0]}", nowhere)
        fetch(side, version, "beside", topic(side, version, name, wanted(0, 18)), nowhere)
    if version < FIRST_ID_VERSION:
        fetch(side, version, "empty name", topic(side, version, "", wanted()))
    fetch(side, version, "nothing")
    fetch(side, version, "no partition", topic(side, version, name))
    several = topic(side, version, name, wanted(9), wanted(0, 99), wanted(0, 18))
    fetch(side, version, "several", several)
    apart = topic(side, version, name, wanted(9), wanted(0, 99))
    fetch(side, version, "errors do not wait", apart, min_bytes=1_000_000, max_wait_ms=60_000)
    lost = topic(side, version, name, wanted(9))
    fetch(side, version, "nothing to wait for", lost, min_bytes=1_000_000, max_wait_ms=60_000)


@probe(FetchRequest)
def epochs(side: Side, version: int) -> None:
    name = side.filled("fetch")
    for epoch in (-1, 0, 1, 9, -5):
        part = wanted(0, 18, current_leader_epoch=epoch)
        fetch(side, version, f"leader epoch {epoch}", topic(side, version, name, part))
    for epoch, offset in ((0, 18), (0, 20), (0, 25), (1, 5), (3, 5), (3, 25), (-1, 25), (0, -1)):
        part = wanted(0, offset, last_fetched_epoch=epoch)
        question = f"last fetched epoch {epoch} at {offset}"
        fetch(side, version, question, topic(side, version, name, part))
    part = wanted(0, 99, current_leader_epoch=9, last_fetched_epoch=4)
    fetch(side, version, "all wrong", topic(side, version, name, part))


@probe(FetchRequest)
def start_moved(side: Side, version: int) -> None:
    name = side.filled("fetch-cut")
    cut = [DeleteRecordsPartition(partition_index=0, offset=5)]
    topics = [DeleteRecordsTopic(name=name, partitions=cut)]
    side.prepare(DeleteRecordsRequest(topics=topics, timeout_ms=5_000), 2)
    for offset in (0, 4, 5, 6):
        fetch(side, version, f"offset {offset}", topic(side, version, name, wanted(0, offset)))
        part = wanted(0, offset, last_fetched_epoch=0)
        fetch(side, version, f"offset {offset}, epoch", topic(side, version, name, part))


@probe(FetchRequest)
def replicas(side: Side, version: int) -> None:
    name = side.filled("fetch")
    for replica_id in (-2, -3, 1, 5):
        asked = topic(side, version, name, wanted(0, 18))
        fetch(side, version, f"replica {replica_id}", asked, replica_id=replica_id)
        beyond = topic(side, version, name, wanted(0, 21))
        fetch(side, version, f"replica {replica_id} beyond", beyond, replica_id=replica_id)
        fetch(
            side,
            version,
            f"replica {replica_id} committed",
            asked,
            replica_id=replica_id,
            isolation_level=1,
        )
    fetch(side, version, "rack", topic(side, version, name, wanted(0, 18)), rack_id="r")


@probe(FetchRequest, range(FIRST_SESSION_VERSION, 19))
def session_life(side: Side, version: int) -> None:
    name = side.topic(f"session-{version}", 3)
    side.produce(name, batch(b"first"))

    def ask(question: str, *parts: FetchPartition, **more: Any) -> Any:
        topics = [topic(side, version, name, *parts)] if parts else []
        return fetch(side, version, question, *topics, **more)

    created = ask("create", wanted(0), wanted(1), wanted(2), session_epoch=0)
    session = {"session_id": created.session_id}
    ask("nothing new at once", session_epoch=1, **session)
    ask("the same epoch again", session_epoch=1, **session)
    ask("an epoch ahead", session_epoch=4, **session)
    ask("go on at 1", wanted(0, 1), session_epoch=2, **session)
    ask("silence", session_epoch=3, **session)
    side.produce(name, batch(b"second"), 1)
    ask("news of one", session_epoch=4, **session)
    ask("again, not moved on", session_epoch=5, **session)
    ask("out of range", wanted(1, 77), session_epoch=6, **session)
    ask("still out of range", session_epoch=7, **session)
    ask("in range", wanted(1, 1), session_epoch=8, **session)
    forget = [forgotten(side, version, name, 1, 2)]
    ask("forget", session_epoch=9, forgotten_topics_data=forget, **session)
    ask("forget what is not there", session_epoch=10, forgotten_topics_data=forget, **session)
    ask("add an unknown partition", wanted(8), session_epoch=11, **session)
    ask("it stays unknown", session_epoch=12, **session)
    both = [forgotten(side, version, name, 0, 8)]
    ask("forget everything", session_epoch=13, forgotten_topics_data=both, **session)
    ask("gone", session_epoch=14, **session)


@probe(FetchRequest, range(FIRST_SESSION_VERSION, 19))
def session_ends(side: Side, version: int) -> None:
    name = side.filled("fetch")
    asked = topic(side, version, name, wanted(0, 18))
    for session_id, epoch in (
        (12_345, 1),
        (0, 3),
        (12_345, -1),
        (12_345, 0),
        (-4, 1),
        (12_345, -7),
    ):
        question = f"unknown session {session_id} at {epoch}"
        fetch(side, version, question, asked, session_id=session_id, session_epoch=epoch)
    first = fetch(side, version, "create", asked, session_epoch=0)
    second = fetch(
        side, version, "create over", asked, session_id=first.session_id, session_epoch=0
    )
    fetch(side, version, "the first is gone", session_id=first.session_id, session_epoch=1)
    fetch(side, version, "the second lives", session_id=second.session_id, session_epoch=1)
    fetch(side, version, "close it", asked, session_id=second.session_id, session_epoch=-1)
    fetch(side, version, "closed", session_id=second.session_id, session_epoch=2)
    fetch(side, version, "a session of nothing", session_epoch=0)


@probe(FetchRequest, range(FIRST_SESSION_VERSION, 19))
def session_of_unknown_topics(side: Side, version: int) -> None:
    name = side.filled("fetch")
    nowhere = topic(side, version, side.name("nowhere"), wanted(), topic_id=STRANGER)
    known = topic(side, version, name, wanted(0, 20))
    created = fetch(side, version, "create", nowhere, known, session_epoch=0)
    session = {"session_id": created.session_id}
    fetch(side, version, "unknown again", session_epoch=1, **session)
    fetch(side, version, "unknown still", session_epoch=2, **session)


@probe(FetchRequest, range(FIRST_SESSION_VERSION, 19))
def session_of_the_other_kind(side: Side, version: int) -> None:
    name = side.filled("fetch")
    other = 12 if version >= FIRST_ID_VERSION else FIRST_ID_VERSION
    asked = topic(side, version, name, wanted(0, 20))
    created = fetch(side, version, "create", asked, session_epoch=0)
    session = {"session_id": created.session_id}
    fetch(side, other, "other kind", session_epoch=1, **session)
    asked = topic(side, other, name, wanted(0, 20))
    fetch(side, other, "other kind with a partition", asked, session_epoch=1, **session)
    fetch(side, version, "the first kind", session_epoch=1, **session)


@probe(FetchRequest, range(FIRST_SESSION_VERSION, 19))
def session_takes_turns(side: Side, version: int) -> None:
    """Each answer has room for one partition; those that had their turn go to the end."""
    name = side.topic("fetch-turns", 3)
    if not side.once("fetch-turns"):
        for index in (0, 1, 2, 0, 1, 2):
            side.produce(name, batch(b"x" * 50), index)
    asked = topic(side, version, name, *(wanted(index) for index in range(3)))
    created = fetch(side, version, "first turn", asked, session_epoch=0, max_bytes=1)
    session = {"session_id": created.session_id, "max_bytes": 1}
    for epoch in range(1, 4):
        fetch(side, version, f"turn {epoch}", session_epoch=epoch, **session)
    moved = topic(side, version, name, wanted(1, 1), wanted(0, 2))
    fetch(side, version, "two moved on", moved, session_epoch=4, **session)
    for epoch in range(5, 9):
        fetch(side, version, f"turn {epoch}", session_epoch=epoch, **session)


@probe(FetchRequest, (4, 7, 12, 13, 15, 18))
def topics_made_anew(side: Side, version: int) -> None:
    """What a name, an id and a session mean after their topic was deleted and created again."""
    has_sessions = version >= FIRST_SESSION_VERSION
    name = side.filled(f"anew-{version}", 1)
    old = topic(side, version, name, wanted())
    session = {}
    if has_sessions:
        created = fetch(side, version, "create", old, session_epoch=0)
        session = {"session_id": created.session_id}
    side.delete_topic(name)
    fetch(side, version, "deleted", old)
    if has_sessions:
        fetch(side, version, "deleted, in a session", session_epoch=1, **session)
        fetch(side, version, "once more", session_epoch=2, **session)
    side.filled(f"anew-{version}", 2)
    fetch(side, version, "made anew, as before", old)
    if has_sessions:
        for epoch in (3, 4):
            fetch(side, version, f"made anew, at {epoch}", session_epoch=epoch, **session)
        new = topic(side, version, name, wanted())
        fetch(side, version, "the new one", new, session_epoch=5, **session)
        fetch(side, version, "and again", session_epoch=6, **session)


@probe(FetchRequest)
def named_twice(side: Side, version: int) -> None:
    name = side.filled("fetch")
    first, second = wanted(0, 16), wanted(0, 18)
    fetch(side, version, "a partition", topic(side, version, name, first, second))
    apart = (topic(side, version, name, first), topic(side, version, name, second))
    fetch(side, version, "a topic", *apart)
    if version >= FIRST_SESSION_VERSION:
        fetch(side, version, "for a session", *apart, session_epoch=0)


@probe(FetchRequest)
def odd_numbers(side: Side, version: int) -> None:
    name = side.filled("fetch")
    end = topic(side, version, name, wanted(0, 20))
    for least in (-1, 0):
        fetch(side, version, f"at least {least}", end, min_bytes=least, max_wait_ms=60_000)
    for wait in (0, -1, -60_000):
        fetch(side, version, f"wait {wait}", end, min_bytes=1, max_wait_ms=wait)


@probe(FetchRequest)
def long_poll_for_more(side: Side, version: int) -> None:
    name = side.topic("fetch-more", 16)
    index = version - 4
    request = FetchRequest(
        max_wait_ms=9_000,
        min_bytes=100,
        max_bytes=1 << 20,
        session_epoch=-1,
        topics=[topic(side, version, name, wanted(index))],
    )
    sent = side.send(request, version, line="poll")
    side.produce(name, batch(b"too little"), index)
    side.produce(name, batch(b"enough"), index)
    side.answer(sent, "both", line="poll")


@probe(FetchRequest)
def long_poll(side: Side, version: int) -> None:
    name = side.topic("fetch-poll", 16)
    index = version - 4
    request = FetchRequest(
        max_wait_ms=9_000,
        min_bytes=1,
        max_bytes=1 << 20,
        session_epoch=-1,
        topics=[topic(side, version, name, wanted(index))],
    )
    sent = side.send(request, version, line="poll")
    side.produce(name, batch(b"news"), index)
    side.answer(sent, "woken", line="poll")


@probe(FetchRequest)
def patience_of_no_use(side: Side, version: int) -> None:
    """Who asks for more than can come is answered at once."""
    name = side.filled("fetch")
    asked = topic(side, version, name, wanted())
    fetch(
        side,
        version,
        "more than it takes",
        asked,
        min_bytes=1_000_000,
        max_bytes=150,
        max_wait_ms=60_000,
    )
    rolled = side.topic("fetch-rolled", segment_bytes=str(1 << 20))
    if not side.once("fetch-rolled"):
        for value in (bytes(600_000), b"small", bytes(600_000)):
            side.produce(rolled, batch(value))
    asked = topic(side, version, rolled, wanted(0, 1))
    fetch(side, version, "of an older segment", asked, min_bytes=1_000, max_wait_ms=60_000)


@probe(FetchRequest, (4, 12, 18))
def long_poll_for_what_goes(side: Side, version: int) -> None:
    name = side.topic(f"fetch-goes-{version}")
    request = FetchRequest(
        max_wait_ms=60_000,
        min_bytes=1,
        max_bytes=1 << 20,
        session_epoch=-1,
        topics=[topic(side, version, name, wanted())],
    )
    sent = side.send(request, version, line="poll")
    side.delete_topic(name)
    side.answer(sent, "gone", line="poll")
