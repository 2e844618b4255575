"""What we write to `__consumer_offsets` is what Apache writes, and Apache's tool reads ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kraft_wire.model import Uuid
from kraft_wire.wire.generated.group_metadata_key import GroupMetadataKey
from kraft_wire.wire.generated.group_metadata_value import GroupMetadataValue
from kraft_wire.wire.generated.offset_commit_key import OffsetCommitKey
from kraft_wire.wire.generated.offset_commit_value import OffsetCommitValue
from kraft_wire.wire.records.record_batch import parse_batches
from tests.apache.java_process import run_java
from tests.apache.node import ApacheNode
from tests.broker.groups import stories
from tests.broker.groups.doors import Plain, SocketDoor, VirtualDoor
from tests.broker.groups.harness import Harness
from tests.broker.groups.requests import Door, Member

pytestmark = pytest.mark.java

TOLD = [
    stories.two_members,
    stories.static_members,
    stories.removal_by_instance,
    stories.commits_of_members,
    stories.commits_in_every_version,
    stories.deletions,
    stories.offset_deletions,
]


EVERYWHERE = tuple(f"warm-{n}" for n in range(20))
"""Groups of which each partition has one."""


def old_client_commits(door: Door, group: str, topic_id: Uuid) -> Iterator[Any]:
    yield Member(door, group).commit(stories.TOPIC, version=2, retention_time_ms=86_400_000)


@pytest.mark.parametrize("story", [*TOLD, old_client_commits], ids=lambda story: story.__name__)
def test_our_records_are_apache_s(story: stories.Story, apache_node: ApacheNode) -> None:
    name = f"records-{story.__name__}"
    with closing(SocketDoor(apache_node.bootstrap)) as theirs:
        topic_id = theirs.create_topic(stories.TOPIC)
        theirs.await_coordinator(*EVERYWHERE)
        list(story(theirs, name, topic_id))
        theirs.flush_coordinator(stories.TOPIC, EVERYWHERE)
    harness = Harness(offsets_partitions=4)
    ours = VirtualDoor(harness)
    list(story(ours, name, ours.create_topic(stories.TOPIC)))
    their_logs = [
        (folder / "00000000000000000000.log").read_bytes()
        for folder in sorted(apache_node.data.glob("__consumer_offsets-*"))
    ]
    our_logs = [b"".join(harness.store.logs[partition]) for partition in sorted(harness.store.logs)]
    our_records = readable(our_logs, name)
    assert our_records
    assert our_records == readable(their_logs, name)


def test_apache_s_tool_decodes_what_we_write(tmp_path: Path) -> None:
    harness = Harness(offsets_partitions=1)
    door = VirtualDoor(harness)
    topic_id = door.create_topic(stories.TOPIC)
    for story in TOLD:
        list(story(door, story.__name__, topic_id))
    log = tmp_path / "00000000000000000000.log"
    log.write_bytes(b"".join(harness.store.logs[0]))
    arguments = ["--files", str(log), "--offsets-decoder", "--deep-iteration"]
    dumped = run_java("org.apache.kafka.tools.DumpLogSegments", arguments)
    assert dumped.exit_code == 0, dumped.text
    payloads = [line for line in dumped.text.splitlines() if "| offset:" in line]
    assert len(payloads) == harness.store.ends[0]
    assert all('key: {"type":"' in line for line in payloads)
    assert not [line for line in dumped.text.splitlines() if "rror" in line or "corrupt" in line]


def readable(logs: list[bytes], name: str) -> dict[str, list[Any]]:
    """Return each group's records in log order, comparable: no clocks, no drawn ids."""
    found: dict[str, list[Any]] = {}
    plain: dict[str, Plain] = {}
    for data in logs:
        for batch in parse_batches(data):
            for record in batch.records():
                assert record.key is not None
                decoded = decode(bytes(record.key), record.value)
                if decoded is None or not decoded[0].group.startswith(name):
                    continue
                group = decoded[0].group
                comparable = plain.setdefault(group, Plain())
                found.setdefault(group, []).append([comparable(part) for part in decoded])
    return found


def decode(key: bytes, value: bytes | None) -> list[Any] | None:
    kind = int.from_bytes(key[:2], "big")
    if kind not in (1, 2):
        return None
    keys = (OffsetCommitKey, GroupMetadataKey)
    values = (OffsetCommitValue, GroupMetadataValue)
    decoded_key, _ = keys[kind - 1].decode(key, 0, 2)
    if value is None:
        return [decoded_key, kind, None]
    version = int.from_bytes(value[:2], "big")
    decoded_value, end = values[kind - 1].decode(value, version, 2)
    assert end == len(value)
    assert bytes(decoded_value.encode(version)) == bytes(value[2:])
    for clock in ("commit_timestamp", "current_state_timestamp", "expire_timestamp"):
        if getattr(decoded_value, clock, -1) != -1:
            setattr(decoded_value, clock, 0)
    if getattr(decoded_value, "topic_id", bytes(16)) != bytes(16):
        decoded_value.topic_id = Uuid(b"\x01" * 16)
    return [decoded_key, kind, version, decoded_value]
