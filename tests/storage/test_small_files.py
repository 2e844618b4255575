"""Text files of a log directory: Kafka's bytes, strict parsing, cross-checks."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraft_wire.model import LeaderEpoch, Offset, ReplicaId, TopicPartition, Uuid
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.storage.directory.checkpoint_text import CorruptCheckpoint
from kraft_wire.storage.directory.checkpoints import read_offsets, write_offsets
from kraft_wire.storage.directory.meta_properties import (
    MetaProperties,
    read_meta_properties,
    write_meta_properties,
)
from kraft_wire.storage.directory.partition_metadata import read_topic_id, write_topic_id
from kraft_wire.storage.directory.quorum_state import (
    ElectionState,
    read_quorum_state,
    write_quorum_state,
)
from kraft_wire.storage.files import replace_file

ID = Uuid(bytes(range(16)))


def disk(**files: bytes) -> SimFileSystem:
    fs = SimFileSystem()
    fs.make_directory("d")
    for name, content in files.items():
        replace_file(fs, "d/" + name.replace("_", "-"), content)
    return fs


# -- offset checkpoints --------------------------------------------------------------------------


def test_offset_checkpoint_is_kafkas_text() -> None:
    fs = disk()
    write_offsets(
        fs, "d/c", {TopicPartition("b", 1): Offset(7), TopicPartition("a-x", 0): Offset(0)}
    )
    assert fs.read("d/c") == b"0\n2\na-x 0 0\nb 1 7\n"
    assert read_offsets(fs, "d/c") == {
        TopicPartition("a-x", 0): 0,
        TopicPartition("b", 1): 7,
    }
    assert read_offsets(fs, "d/none") == {}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"\n", "line 1"),
        (b"1\n0\n", "line 1"),
        (b"0\n", "line 2"),
        (b"0\n2\na 0 1\n", "line 2"),
        (b"0\n1\na 0\n", "line 3"),
        (b"0\n1\na  1\n", "line 3"),
        (b"0\n1\na 0 1", "is incomplete"),
        (b"0\n1\na 0 x\n", "is not a number"),
        (b"0\n1\na 0 01\n", "plain form"),
        (b"0\n1\na 0 9999999999999999999\n", "plain form"),
        (b"0\n1\na 0 99999999999999999999\n", "is not a number"),
        (b"0\n1\na -1 1\n", "impossible"),
        (b"0\n1\na 0 -1\n", "impossible"),
        (b"0\n2\na 0 1\na 0 2\n", "twice"),
        (b"0\n1\n\xff 0 1\n", "UTF-8"),
    ],
)
def test_damaged_offset_checkpoint_is_refused(text: bytes, reason: str) -> None:
    with pytest.raises(CorruptCheckpoint, match=reason):
        read_offsets(disk(c=text), "d/c")


# -- partition.metadata --------------------------------------------------------------------------


def test_partition_metadata_is_kafkas_text() -> None:
    fs = disk()
    assert read_topic_id(fs, "d") is None
    write_topic_id(fs, "d", ID)
    assert fs.read("d/partition.metadata") == b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"
    assert read_topic_id(fs, "d") == ID


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"version: 1\ntopic_id: AAECAwQFBgcICQoLDA0ODw",
        b"version: 0",
        b"version: 0\nid: AAECAwQFBgcICQoLDA0ODw",
        b"version: 0\ntopic_id: AAEC",
        b"version: 0\ntopic_id: \xff",
    ],
)
def test_damaged_partition_metadata_is_refused(text: bytes) -> None:
    fs = SimFileSystem()
    fs.make_directory("d")
    replace_file(fs, "d/partition.metadata", text)
    with pytest.raises(CorruptCheckpoint):
        read_topic_id(fs, "d")


# -- meta.properties -----------------------------------------------------------------------------


def test_meta_properties_read_back_with_escapes_and_unknown_keys() -> None:
    fs = disk()
    assert read_meta_properties(fs, "d") is None
    meta = MetaProperties("a=b:c#d", 3, ID, {"broker.id": "3"})
    write_meta_properties(fs, "d", meta)
    assert read_meta_properties(fs, "d") == meta


@pytest.mark.parametrize(
    "text",
    [
        b"version=1\r\ncluster.id=a\r\n\r\nnode.id=1\r\n",
        b"version=1\ncluster.id=a\nnode.id=5\nnode.id=1\n",
        b"version 1\ncluster.id: a\nnode.id=\\\n  1",
        b"# f\xfcr uns\n ! und\nversion=1\ncluster.id=a\nnode\\u002eid = 1 \n",
    ],
)
def test_meta_properties_are_read_as_java_reads_them(text: bytes) -> None:
    """PropertiesUtils.readPropertiesFile of 4.3.1: people edit the file."""
    fs = disk()
    replace_file(fs, "d/meta.properties", text)
    assert read_meta_properties(fs, "d") == MetaProperties("a", 1, None)


def test_meta_properties_keep_keys_of_any_text() -> None:
    fs = disk()
    meta = MetaProperties("a", 3, ID, {"nonsense": "", "für": "a\tb\U0001f600"})
    write_meta_properties(fs, "d", meta)
    assert read_meta_properties(fs, "d") == meta


def test_meta_properties_of_an_older_release_has_no_directory_id() -> None:
    fs = SimFileSystem()
    fs.make_directory("d")
    text = b"#\n#Mon Oct 12 10:00:00 UTC 2026\r\nnode.id=1\nversion=1\n! x\ncluster.id:abc\n"
    replace_file(fs, "d/meta.properties", text)
    assert read_meta_properties(fs, "d") == MetaProperties("abc", 1, None)
    write_meta_properties(fs, "d", MetaProperties("abc", 1, None))
    assert read_meta_properties(fs, "d") == MetaProperties("abc", 1, None)


@pytest.mark.parametrize(
    ("line", "cluster_id"),
    [
        (b"cluster.id=a=b:c", "a=b:c"),
        (b"cluster.id:a=b", "a=b"),
        (b"cluster.id\\=a", None),
        (b"cluster.id = a ", "a"),
        (b"cluster\\.id=\\=\\:", "=:"),
    ],
)
def test_only_the_first_separator_ends_a_key(line: bytes, cluster_id: str | None) -> None:
    """`java.util.Properties` writes the others with a backslash, and reads them without one too."""
    fs = SimFileSystem()
    fs.make_directory("d")
    replace_file(fs, "d/meta.properties", b"version=1\nnode.id=1\n" + line + b"\n")
    if cluster_id is None:
        with pytest.raises(CorruptCheckpoint):
            read_meta_properties(fs, "d")
    else:
        assert read_meta_properties(fs, "d") == MetaProperties(cluster_id, 1, None)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"version=0\ncluster.id=a\nnode.id=1\n",
        b"version=1\nnode.id=1\n",
        b"version=1\ncluster.id=a\n",
        b"version=1\ncluster.id=a\nnode.id=-1\n",
        b"version=1\ncluster.id=a\nnode.id=x\n",
        b"version=1\ncluster.id=a\nnode.id=1\ndirectory.id=AA\n",
    ],
)
def test_damaged_meta_properties_is_refused(text: bytes) -> None:
    fs = SimFileSystem()
    fs.make_directory("d")
    replace_file(fs, "d/meta.properties", text)
    with pytest.raises(CorruptCheckpoint):
        read_meta_properties(fs, "d")


# -- quorum-state --------------------------------------------------------------------------------


def test_quorum_state_is_byte_for_byte_what_kafka_4_3_1_was_seen_to_write() -> None:
    fs = disk()
    assert read_quorum_state(fs, "d") is None
    voted = ElectionState(LeaderEpoch(1), leader_id=ReplicaId(1))
    write_quorum_state(fs, "d", voted, 1)
    assert fs.read("d/quorum-state") == (
        b'{"leaderId":1,"leaderEpoch":1,"votedId":-1,'
        b'"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}'
    )
    assert read_quorum_state(fs, "d") == voted
    static = ElectionState(
        LeaderEpoch(1), leader_id=ReplicaId(1), static_voters=(ReplicaId(1), ReplicaId(2))
    )
    write_quorum_state(fs, "d", static, 0)
    assert fs.read("d/quorum-state") == (
        b'{"clusterId":"","leaderId":1,"leaderEpoch":1,"votedId":-1,"appliedOffset":0,'
        b'"currentVoters":[{"voterId":1},{"voterId":2}],"data_version":0}'
    )
    assert read_quorum_state(fs, "d") == static


GOOD = {
    "leaderId": "1",
    "leaderEpoch": "1",
    "votedId": "-1",
    "votedDirectoryId": '"' + "A" * 22 + '"',
}


def json_with(**changes: str | None) -> bytes:
    fields = {**GOOD, "data_version": "1", **changes}
    inside = ",".join(f'"{key}":{value}' for key, value in fields.items() if value is not None)
    return f"{{{inside}}}".encode()


V0 = (
    b'{"clusterId":"","leaderId":1,"leaderEpoch":1,"votedId":-1,"appliedOffset":0,'
    b'"currentVoters":%s,"data_version":0}'
)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"\xff",
        b'{"a":1,"a":2}',
        json_with(data_version="2"),
        json_with(data_version="true"),
        json_with(leaderId=None),
        json_with(surplus="1"),
        json_with(leaderEpoch="-1"),
        json_with(leaderEpoch="2147483648"),
        json_with(votedId="true"),
        json_with(votedId='"1"'),
        json_with(votedDirectoryId='"x"'),
        json_with(votedDirectoryId="1"),
        json_with(votedDirectoryId='"AAECAwQFBgcICQoLDA0ODw"'),
        V0 % b"1",
        V0 % b"[1]",
        V0 % b'[{"voterId":-1}]',
        pytest.param(b"[" * 100_000, id="deep"),
    ],
)
def test_damaged_quorum_state_is_refused(text: bytes) -> None:
    fs = SimFileSystem()
    fs.make_directory("d")
    replace_file(fs, "d/quorum-state", text)
    with pytest.raises(CorruptCheckpoint):
        read_quorum_state(fs, "d")


def test_quorum_state_of_a_node_without_voters_is_read() -> None:
    for voters in (b"[]", b"null"):
        fs = SimFileSystem()
        fs.make_directory("d")
        replace_file(fs, "d/quorum-state", V0 % voters)
        assert read_quorum_state(fs, "d") == ElectionState(LeaderEpoch(1), ReplicaId(1))


@given(st.binary(max_size=80))
def test_any_bytes_are_a_state_or_a_named_refusal(data: bytes) -> None:
    fs = SimFileSystem()
    fs.make_directory("d")
    for name in ("quorum-state", "meta.properties", "partition.metadata", "c"):
        replace_file(fs, f"d/{name}", data)
    reads = [read_quorum_state, read_meta_properties, read_topic_id]
    for read in [*reads, lambda disk, path: read_offsets(disk, f"{path}/c")]:
        with suppress(CorruptCheckpoint):
            read(fs, "d")


def test_an_offset_checkpoint_that_apache_has_only_just_made_has_no_entries() -> None:
    fs = SimFileSystem()
    fs.make_directory("/d")
    fs.open("/d/log-start-offset-checkpoint", create=True).close()
    assert read_offsets(fs, "/d/log-start-offset-checkpoint") == {}
