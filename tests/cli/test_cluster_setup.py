"""What a new cluster's directories hold: voters where a quorum begins, settings for its size."""

import contextlib
import ssl
from pathlib import Path
from typing import Any

import pytest

from kraft_wire.cli.cluster import ports
from kraft_wire.cli.cluster.files import CannotRun, ClusterFiles
from kraft_wire.cli.cluster.setup import (
    ClusterPlan,
    apache_jars,
    command_of,
    environment_of,
    make_cluster,
    reformat,
)
from kraft_wire.cli.cluster.state import APACHE, BROKER, COMBINED, CONTROLLER, OURS
from kraft_wire.cli.properties_file import read_properties
from kraft_wire.storage.directory.meta_properties import read_meta_properties
from kraft_wire.storage.os_files import OsFileSystem
from kraft_wire.storage.snapshots.metadata_snapshot import list_snapshots

FS = OsFileSystem()
CONNECTION_PORTS = Path("/proc/sys/net/ipv4/ip_local_port_range")


def voters_in(files: ClusterFiles, node_id: int) -> bool:
    """Whether a directory holds the snapshot that begins a quorum."""
    directory = files.data(node_id) / "__cluster_metadata-0"
    return directory.exists() and bool(list_snapshots(FS, str(directory)))


def test_controllers_begin_a_quorum_and_brokers_find_it(tmp_path: Path) -> None:
    files = ClusterFiles(tmp_path / "new")
    state = make_cluster(files, ClusterPlan(controllers=2, brokers=1, apache_brokers=1))
    assert [(each.node_id, each.role, each.make) for each in state.nodes.values()] == [
        (1, CONTROLLER, OURS),
        (2, CONTROLLER, OURS),
        (3, BROKER, APACHE),
    ]
    assert [voters_in(files, node_id) for node_id in (1, 2, 3)] == [True, True, False]
    found = [read_meta_properties(FS, str(files.data(node_id))) for node_id in (1, 2, 3)]
    assert [meta and (meta.cluster_id, meta.node_id) for meta in found] == [
        (state.cluster_id, node_id) for node_id in (1, 2, 3)
    ]
    assert len({meta.directory_id for meta in found if meta}) == 3
    assert files.load() == state


@pytest.mark.skipif(not CONNECTION_PORTS.exists(), reason="not Linux")
def test_ports_of_nodes_are_none_that_the_kernel_gives_to_connections(tmp_path: Path) -> None:
    first = int(CONNECTION_PORTS.read_text().split()[0])
    if first < 20_000:
        pytest.skip("this machine leaves hardly any port to listeners")
    state = make_cluster(ClusterFiles(tmp_path), ClusterPlan(controllers=3, brokers=3))
    drawn = [each.port for each in state.nodes.values()]
    assert len(set(drawn)) == 6
    assert max(drawn) < first, drawn


def test_ports_are_the_kernel_s_where_connections_may_have_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "range").write_text("1024\t65535\n")
    monkeypatch.setattr(ports, "_CONNECTION_PORTS", tmp_path / "range")
    state = make_cluster(ClusterFiles(tmp_path / "new"), ClusterPlan(controllers=2))
    assert len({each.port for each in state.nodes.values()} - {0}) == 2


def listeners(files: ClusterFiles, node_id: int) -> tuple[str, str]:
    """A node's roles and listeners, as its file says."""
    entries = read_properties(str(files.properties(node_id)))
    return entries["process.roles"].value, entries["listeners"].value


def test_brokers_have_the_first_ports_from_a_given_one_on(tmp_path: Path) -> None:
    files = ClusterFiles(tmp_path)
    state = make_cluster(files, ClusterPlan(controllers=2, brokers=2, base_port=9092))
    assert state.bootstrap_servers == "127.0.0.1:9092,127.0.0.1:9093"
    assert state.bootstrap == "127.0.0.1:9094,127.0.0.1:9095"
    assert listeners(files, 3) == ("broker", "PLAINTEXT://127.0.0.1:9092")


def test_combined_nodes_listen_twice_and_begin_a_quorum(tmp_path: Path) -> None:
    files = ClusterFiles(tmp_path)
    state = make_cluster(files, ClusterPlan(controllers=0, combined=2, base_port=9092))
    assert [each.role for each in state.nodes.values()] == [COMBINED] * 2
    assert state.bootstrap_servers == "127.0.0.1:9092,127.0.0.1:9093"
    assert state.bootstrap == "127.0.0.1:9094,127.0.0.1:9095"
    assert listeners(files, 2) == (
        "broker,controller",
        "PLAINTEXT://127.0.0.1:9093,CONTROLLER://127.0.0.1:9095",
    )
    assert voters_in(files, 1)
    assert voters_in(files, 2)
    assert files.load() == state


def test_node_that_is_formatted_again_knows_no_voters(tmp_path: Path) -> None:
    files = ClusterFiles(tmp_path)
    state = make_cluster(files, ClusterPlan(controllers=1))
    before = read_meta_properties(FS, str(files.data(1)))
    directory_id = reformat(files, state, 1)
    after = read_meta_properties(FS, str(files.data(1)))
    assert before is not None
    assert after is not None
    assert after.directory_id == directory_id != before.directory_id
    assert not voters_in(files, 1)


@pytest.mark.parametrize(
    ("brokers", "copies", "needed"),
    [(0, None, None), (1, "1", "1"), (2, "2", "1"), (3, "3", "2"), (4, "3", "2")],
)
def test_topics_have_as_many_replicas_as_brokers_can_have(
    brokers: int, copies: str | None, needed: str | None, tmp_path: Path
) -> None:
    files = ClusterFiles(tmp_path)
    make_cluster(files, ClusterPlan(controllers=1, brokers=brokers, overrides={"a.b": "c"}))
    for node_id in range(1, brokers + 2):
        entries = read_properties(str(files.properties(node_id)))
        read = {name: each.value for name, each in entries.items()}
        assert read["a.b"] == "c"
        assert read["node.id"] == str(node_id)
        own = ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic")
        for name in ("default", *own):
            assert read.get(f"{name}.replication.factor") == copies
        for name in ("min.insync.replicas", *(f"{each}.min.isr" for each in own[1:])):
            assert read.get(name) == needed
        assert "offsets.topic.min.isr" not in read


def test_command_and_environment_of_a_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = ClusterFiles(tmp_path)
    state = make_cluster(files, ClusterPlan(controllers=2, apache_controllers=1))
    ours = command_of(files, state.nodes[1], None)
    assert ours[1:] == ["-m", "kraft_wire.cli.main", "server", str(files.properties(1))]
    apaches = command_of(files, state.nodes[2], Path("/jars"))
    assert (apaches[0], apaches[-4:]) == (
        "java",
        ["-cp", "/jars/*", "kafka.Kafka", str(files.properties(2))],
    )
    monkeypatch.setenv("KAFKA_NODE_ID", "7")
    monkeypatch.setenv("OTHER", "7")
    assert "KAFKA_NODE_ID" not in environment_of()
    assert environment_of()["OTHER"] == "7"


def test_jars_are_looked_for_where_the_user_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "java").write_text("#!/bin/sh\n")
    (tmp_path / "java").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("KRAFT_WIRE_APACHE_JARS", raising=False)
    with pytest.raises(CannotRun, match="needs Apache Kafka's jars: give their folder"):
        apache_jars(None)
    with pytest.raises(CannotRun, match=r"has no kafka_2\.\*\.jar"):
        apache_jars(str(tmp_path))
    (tmp_path / "kafka_2.13-4.3.1.jar").touch()
    assert apache_jars(str(tmp_path)) == tmp_path
    monkeypatch.setenv("KRAFT_WIRE_APACHE_JARS", str(tmp_path))
    assert apache_jars(None) == tmp_path
    (tmp_path / "java").unlink()
    with pytest.raises(CannotRun, match=r"^--apache needs Java"):
        apache_jars(str(tmp_path))


def test_secured_cluster_has_a_certificate_for_the_address_of_each_node(tmp_path: Path) -> None:
    files = ClusterFiles(tmp_path / "new")
    state = make_cluster(files, ClusterPlan(controllers=1, brokers=1, is_secured=True))
    assert files.load() == state
    trusted = ssl.create_default_context(cafile=str(files.secrets.authority))
    trusted.verify_flags |= ssl.VERIFY_X509_STRICT  # by default from Python 3.13 on
    assert [dict(*each["subject"]) for each in trusted.get_ca_certs()] == [
        {"commonName": "authority of a kraft-wire cluster"}
    ]
    for node_id, node in state.nodes.items():
        properties = files.properties(node_id)
        assert properties.stat().st_mode & 0o777 == 0o600
        assert read_properties(str(properties))["super.users"].value == "User:node;User:admin"
        seen = shown_certificate(files.secrets.certificate(node_id), trusted, node.host)
        assert ("IP Address", node.host) in seen["subjectAltName"]
    files.remove(state)
    assert not files.directory.exists()


def shown_certificate(identity: Path, trusted: ssl.SSLContext, host: str) -> dict[str, Any]:
    """What a client accepts of a server, by OpenSSL, without a socket."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    own = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    own.load_cert_chain(identity)
    server = own.wrap_bio(to_server, to_client, server_side=True)
    client = trusted.wrap_bio(to_client, to_server, server_hostname=host)
    for side in (client, server, client, server, client):
        with contextlib.suppress(ssl.SSLWantReadError):
            side.do_handshake()
    found = client.getpeercert()
    assert found
    return dict(found)
