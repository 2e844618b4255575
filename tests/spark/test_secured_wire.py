"""`kraftwire` over TLS with a login: batch, stream and sink, by the keys of Kafka's clients.

That the keys are Kafka's is shown against Apache's node (`tests/conformance/test_command_config`).
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.sql.types import BinaryType, StructField, StructType
from typer.testing import CliRunner

from kraft_wire.cli.spark.command import app
from kraft_wire.columnar import records_schema
from kraft_wire.spark import PipelineError
from kraft_wire.spark.kraftwire.wire_options import parse_wire_options
from kraft_wire.spark.kraftwire.wire_sink import parse_sink, write_batches
from kraft_wire.spark.kraftwire.wire_tasks import WireReader
from tests.apache.secured_node import MECHANISMS, SecuredNode, client_settings, sasl_settings
from tests.certificates import Authority
from tests.cluster_command import kraft_wire
from tests.process import write_properties

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VALUE = StructType([StructField("value", BinaryType())])


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def node(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredNode]:
    store = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(authority.signed("server").store),
    }
    settings = {**sasl_settings("SECURE"), **store}
    node = SecuredNode(tmp_path_factory.mktemp("node"), "SASL_SSL", settings)
    node.format()
    with node:
        yield node


def options(node: SecuredNode, keys: dict[str, str]) -> dict[str, str]:
    """The options of a source or a sink."""
    named = {f"kafka.{key}": value for key, value in keys.items()}
    return {"kafka.bootstrap.servers": node.secure, **named}


def write(node: SecuredNode, topic: str, keys: dict[str, str], values: list[bytes]) -> None:
    """Write as a task of the sink does, whose settings come to a worker as bytes."""
    sink = parse_sink({**options(node, keys), "topic": topic}, VALUE)
    rows = pa.record_batch({"value": pa.array(values, pa.binary())})
    write_batches(pickle.loads(pickle.dumps(sink)), iter([rows]))


def read(node: SecuredNode, topic: str, keys: dict[str, str]) -> list[bytes]:
    """Read as the tasks of a batch query do."""
    parsed = parse_wire_options({**options(node, keys), "subscribe": topic}, streaming=False)
    reader = pickle.loads(pickle.dumps(WireReader(parsed, records_schema(headers=False))))
    batches = [each for part in reader.partitions() for each in reader.read(part)]
    return [value for batch in batches for value in batch.column("value").to_pylist()]


def create_topic(node: SecuredNode, name: str) -> str:
    done = kraft_wire("topics", "create", name, "-b", node.bootstrap)
    assert done.returncode == 0, done.stderr
    return name


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_what_a_sink_writes_a_batch_query_reads(
    node: SecuredNode, authority: Authority, mechanism: str
) -> None:
    keys = client_settings(authority, mechanism)
    topic = create_topic(node, f"t-{mechanism}")
    write(node, topic, keys, [b"one", b"two"])
    assert read(node, topic, keys) == [b"one", b"two"]


def test_refused_login_ends_the_query_at_once_without_the_password(
    node: SecuredNode, authority: Authority
) -> None:
    """Not at the deadline of a minute: a client of Kafka does not try it again either."""
    keys = client_settings(authority, password="hunter2")
    with pytest.raises(PipelineError, match=r"^no login at 127\.0\.0\.1:\d+: Authent") as refusal:
        read(node, "any", {**keys, "default.api.timeout.ms": "600000"})
    assert "hunter2" not in str(refusal.value)
    settings = parse_wire_options({**options(node, keys), "subscribe": "t"}, streaming=False)
    assert "hunter2" not in repr(settings)


@pytest.mark.java
def test_a_stream_takes_its_keys_from_a_file(
    spark: SparkSession, node: SecuredNode, authority: Authority, tmp_path: Path
) -> None:
    keys = client_settings(authority)
    topic = create_topic(node, "streamed")
    write(node, topic, keys, [b"first", b"second"])
    file = tmp_path / "client.properties"
    write_properties(file, keys)
    output = str(tmp_path / "out")
    words = ["ingest", "--subscribe", topic, "--output", output, "-b", node.secure]
    done = CliRunner().invoke(
        app, [*words, "--checkpoint", str(tmp_path / "c"), "--command-config", str(file)]
    )
    assert done.exit_code == 0, done.output
    rows = spark.read.parquet(output).collect()
    assert sorted(row.value for row in rows) == [b"first", b"second"]
