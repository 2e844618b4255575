"""What a node is told to be: sources in their order, and every wrong value named with its place."""

import pytest

from kraft_wire.node.config import ConfigError, Listener, Setting, load_config, settings_of_file

COMBINED = """\
process.roles=broker,controller
node.id=7
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:19092,CONTROLLER://127.0.0.1:19093
controller.quorum.voters=7@127.0.0.1:19093
log.dirs=/a, /b
num.partitions=3
"""


def of_file(more: str = "") -> dict[str, Setting]:
    return settings_of_file(COMBINED + more, "server.properties")


def test_without_a_file_the_node_is_embedded_on_the_usual_port() -> None:
    config = load_config(None, {})
    assert config.is_embedded
    assert config.listeners == (Listener("PLAINTEXT", "127.0.0.1", 9092, "127.0.0.1", 9092),)
    assert config.log_dirs == ("kraft-wire-data",)
    assert config.settings.integer("offsets.topic.replication.factor") == 1


def test_a_file_is_read_as_kafka_reads_it() -> None:
    config = load_config(of_file("my.own.key=1\n"), {})
    assert (config.node_id, config.log_dirs) == (7, ("/a", "/b"))
    assert [each.name for each in config.listeners] == ["PLAINTEXT"]
    assert config.controller_listener is not None
    assert config.controller_listener.port == 19093
    assert config.settings.integer("num.partitions") == 3
    assert config.unknown_keys == ("my.own.key",)


def test_environment_beats_the_file_and_overrides_beat_both() -> None:
    environment = {
        "KAFKA_NUM_PARTITIONS": "5",
        "KAFKA_MY__OWN___KEY": "x",
        "KAFKA_HEAP_OPTS": "-Xmx1g",
        "PATH": "/bin",
    }
    config = load_config(of_file(), environment)
    assert config.settings.integer("num.partitions") == 5
    assert config.unknown_keys == ("my_own-key",)
    overridden = load_config(
        of_file(), environment, [("num.partitions", Setting("9", "--override"))]
    )
    assert overridden.settings.integer("num.partitions") == 9


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("num.partitions=zero", "server.properties:8: num.partitions=zero: Not a number"),
        ("num.partitions=0", "server.properties:8: num.partitions=0: Value must be at least 1"),
        ("process.roles=broker", "server.properties:8: process.roles=broker: must be broker"),
        ("listeners=SSL://:1", "server.properties:8: listeners=SSL://:1: SSL asks for SSL"),
        ("listeners=PLAINTEXT://x", "server.properties:8: listeners=PLAINTEXT://x: 'PLAIN"),
        ("listeners=CONTROLLER://:1", "no listener is left for clients"),
        ("listeners=PLAINTEXT://0.0.0.0:1", "advertised.listeners must name one"),
        ("listeners=A://:1,A://:2", "each listener must have a different name"),
        ("node.id=-2", "server.properties:8: node.id=-2"),
        ("log.dirs= , ", "server.properties:8: log.dirs="),
        (
            "metadata.log.dir=/other",
            "server.properties:8: metadata.log.dir=/other: the metadata log is in the first of",
        ),
    ],
)
def test_a_wrong_value_names_file_line_key_and_reason(line: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(of_file(line + "\n"), {})
    assert message in str(caught.value)


def test_what_is_advertised_may_differ_from_what_is_bound() -> None:
    more = "listeners=PLAINTEXT://0.0.0.0:0\nadvertised.listeners=PLAINTEXT://kafka.example:29092\n"
    (listener,) = load_config(of_file(more), {}).with_ports({"PLAINTEXT": 40123}).listeners
    assert listener == Listener("PLAINTEXT", "0.0.0.0", 40123, "kafka.example", 29092)


def test_a_free_port_is_advertised_once_it_is_known() -> None:
    (listener,) = (
        load_config(None, {}, [("listeners", Setting("PLAINTEXT://127.0.0.1:0", "--listen"))])
        .with_ports({"PLAINTEXT": 40123})
        .listeners
    )
    assert listener.advertised_port == 40123
