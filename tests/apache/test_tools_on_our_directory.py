"""Apache's tools on a data directory: kafka-dump-log over every file, in every mode.

A broker is driven by real producers (every codec, idempotent, keys and headers, compaction, a
deleted topic, committed offsets), stopped, and its files are given to the tools. The same is done
with Apache's own node first. kafka-dump-log reports a fault in words and still ends with 0, so its
output is searched for those words.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.apache.brokers import NAMES, broker_process
from tests.apache.tools import run_tool
from tests.clients.python.adapter import Produced
from tests.clients.python.confluent_adapter import ConfluentAdapter
from tests.clients.python.scenarios import CODECS

pytestmark = [pytest.mark.java, pytest.mark.slow]

FAULTS = re.compile(
    r"Found timestamp mismatch|Index timestamp|Mismatches in|Non-consecutive offsets|"
    r"Non-secutive|isvalid: false|Exception|Could not deserialize|Error at|corrupt|"
    r"INVALID|out of order",
    re.IGNORECASE,
)
RECORDS_PER_CODEC = 400
ROLLING = {"segment.bytes": "1048576", "index.interval.bytes": "64"}


def fill(bootstrap: str) -> None:
    """Produce what a directory of a busy node holds."""
    client = ConfluentAdapter(bootstrap)
    for codec in CODECS:
        topic = f"codec-{codec}"
        client.create_topic(topic, 1, ROLLING)
        client.produce(topic, records(RECORDS_PER_CODEC), codec=codec, idempotent=codec == "lz4")
    client.create_topic("rolled", 2, ROLLING)
    for _ in range(4):
        client.produce("rolled", [Produced(b"x" * 100_000, partition=n % 2) for n in range(20)])
    client.create_topic("compacted", 1, {"cleanup.policy": "compact", **ROLLING})
    client.produce(
        "compacted", [Produced(b"v%d" % n, b"k%d" % (n % 9), partition=0) for n in range(99)]
    )
    client.create_topic("deleted", 1, {})
    client.delete_topic("deleted")
    assert len(client.consume_in_group("codec-none", "readers", 100)) == 100


def records(count: int) -> list[Produced]:
    """Records with keys, headers and nulls now and then."""
    return [
        Produced(
            None if n % 50 == 7 else b"value %d " % n * 5,
            key=None if n % 3 else b"key %d" % n,
            headers=[("h", b"%d" % n)] if n % 5 == 0 else [],
            partition=0,
        )
        for n in range(count)
    ]


@pytest.fixture(scope="module", params=NAMES)
def directory(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data directory that a filled and stopped broker left behind."""
    home: Path = tmp_path_factory.mktemp(request.param)
    with broker_process(request.param, home) as broker:
        fill(broker.bootstrap)
    return broker.data


def dump(files: list[Path], *mode: str) -> str:
    """The tool's output over files, which must end well and show no fault."""
    assert files
    done = run_tool("kafka-dump-log", ["--files", ",".join(map(str, files)), *mode])
    assert done.exit_code == 0, done.text
    fault = FAULTS.search(done.text)
    assert fault is None, done.text[max(0, fault.start() - 600) : fault.end() + 600]
    return done.stdout


def files_of(directory: Path, pattern: str) -> list[Path]:
    """Files of the directory that hold something."""
    return sorted(path for path in directory.glob(pattern) if path.stat().st_size)


def test_dump_log_finds_no_fault_in_any_segment(directory: Path) -> None:
    shown = dump(files_of(directory, "*/*.log"))
    assert shown.count("baseOffset:") > 20
    for codec in CODECS:
        assert f"compresscodec: {codec}" in shown
    assert "producerId: 0" in shown or re.search(r"producerId: \d+ ", shown)


def test_dump_log_deep_iteration_prints_every_record(directory: Path) -> None:
    for codec in CODECS:
        segments = files_of(directory, f"codec-{codec}-0/*.log")
        shown = dump(segments, "--deep-iteration", "--print-data-log")
        assert len(re.findall(r"^\| offset: ", shown, re.MULTILINE)) == RECORDS_PER_CODEC
        assert "payload: value 1 " in shown
        assert re.search(r"headerKeys: \[h\]", shown)


def test_dump_log_reads_indexes_and_their_sanity_check_passes(directory: Path) -> None:
    indexes = files_of(directory, "rolled-*/*.index") + files_of(directory, "codec-*/*.index")
    assert "offset: " in dump(indexes)
    dump(indexes, "--index-sanity-check")
    dump(indexes, "--verify-index-only")
    dump(files_of(directory, "rolled-*/*.timeindex") + files_of(directory, "codec-*/*.timeindex"))


def test_a_topic_rolls_into_several_segments(directory: Path) -> None:
    assert len(files_of(directory, "rolled-0/*.log")) >= 3


def test_dump_log_decodes_committed_offsets(directory: Path) -> None:
    segments = files_of(directory, "__consumer_offsets-*/*.log")
    shown = dump(segments, "--offsets-decoder", "--print-data-log")
    assert re.search(
        r'"type":"1","data":\{"group":"readers","topic":"codec-none","partition":0\}', shown
    ), shown
    assert re.search(r'"version":"[34]","data":\{"offset":100,', shown), shown
    assert re.search(r'"type":"2","data":\{"group":"readers"\}', shown), shown


def test_dump_log_decodes_the_metadata_log(directory: Path) -> None:
    segments = files_of(directory, "__cluster_metadata-0/*.log")
    shown = dump(segments, "--cluster-metadata-decoder", "--deep-iteration")
    for record in ("TOPIC_RECORD", "PARTITION_RECORD", "CONFIG_RECORD", "FEATURE_LEVEL_RECORD"):
        assert f'"type":"{record}"' in shown
    assert '"type":"REGISTER_BROKER_RECORD"' in shown
    assert '"type":"REMOVE_TOPIC_RECORD"' in shown
    assert "LeaderChange" in shown


def test_dump_log_decodes_checkpoints_of_the_metadata(directory: Path) -> None:
    checkpoints = files_of(directory, "*.checkpoint") + files_of(directory, "*/*.checkpoint")
    shown = dump(checkpoints, "--cluster-metadata-decoder", "--deep-iteration")
    assert "SnapshotHeader" in shown
    assert "SnapshotFooter" in shown
    assert '"type":"FEATURE_LEVEL_RECORD"' in shown


def test_dump_log_reads_producer_snapshots(directory: Path) -> None:
    shown = dump(files_of(directory, "codec-lz4-0/*.snapshot"))
    assert re.search(r"producerId: \d+ producerEpoch: 0", shown), shown


def test_kafka_storage_info_knows_the_directory(directory: Path) -> None:
    properties = directory.parent / "info.properties"
    settings = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": "1@127.0.0.1:9093",
        "controller.listener.names": "CONTROLLER",
        "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
        "log.dirs": str(directory),
    }
    properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    done = run_tool("kafka-storage", ["info", "-c", str(properties)])
    assert done.exit_code == 0, done.text
    assert re.search(r"Found log director", done.stdout), done.text
    assert "Found problem" not in done.text, done.text
