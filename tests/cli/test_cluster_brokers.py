"""``kraft-wire cluster`` with brokers: processes that are started, hurt, cut off and ended."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from typer.testing import CliRunner

from kraft_wire.cli.cluster.command import app
from kraft_wire.cli.cluster.network import missing
from tests.cluster_command import ClusterCommand, kraft_wire

BROKERS = (2, 3, 4)
SHORT = [
    *("--controllers", "1"),
    *("--override", "broker.session.timeout.ms=2000"),
    *("--override", "broker.heartbeat.interval.ms=200"),
    *("--override", "replica.lag.time.max.ms=2000"),
]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterCommand]:
    directory = tmp_path_factory.mktemp("home") / "cluster"
    with ClusterCommand(directory, *SHORT, "--brokers", "3") as running:
        running.until(lambda: all(status(running, each)["role"] == "Broker" for each in BROKERS))
        made = topics(running, "create", "t", "-p", "3")
        assert made.startswith("t: 3 partitions"), made
        running.until(lambda: figures(running) == (3, 0, 0))
        yield running


def told(cluster: ClusterCommand) -> Any:
    """What `status` says."""
    done = cluster.run("status", "--json")
    assert done.returncode == 0, done
    return json.loads(done.stdout)


def status(cluster: ClusterCommand, node_id: int) -> Any:
    """What `status` says of a node."""
    return next(each for each in told(cluster)["nodes"] if each["node_id"] == node_id)


def figures(cluster: ClusterCommand) -> tuple[int, int, int]:
    """Partitions: all, under-replicated, without a leader."""
    said = told(cluster)
    return said["partitions"], said["under_replicated"], said["leaderless"]


def topics(cluster: ClusterCommand, *arguments: str) -> str:
    """Run a verb about topics at the first broker."""
    done = kraft_wire("topics", *arguments, "-b", told(cluster)["bootstrap_servers"].split(",")[0])
    assert done.returncode == 0, done
    said: str = done.stdout
    return said


def health(cluster: ClusterCommand, server: int = 0) -> tuple[int, dict[str, bool]]:
    """The exit code of `health`, and its checks."""
    servers = told(cluster)["bootstrap_servers"].split(",")
    done = kraft_wire("cluster", "health", "--json", "-b", servers[server])
    said = json.loads(done.stdout)
    assert said["healthy"] is (done.returncode == 0), done
    return done.returncode, {each["check"]: each["ok"] for each in said["checks"]}


@pytest.mark.slow
def test_health_is_lost_with_a_broker_and_found_again(cluster: ClusterCommand) -> None:
    well = dict.fromkeys(("brokers", "quorum", "leaders", "replicas"), True)
    made = topics(cluster, "create", "h", "--replicas", "2,3,4")
    assert made.startswith("h: 1 partition,"), made
    cluster.until(lambda: health(cluster) == (0, well))
    cluster.did("kill", "4")
    cluster.until(lambda: health(cluster) == (1, {**well, "replicas": False}))
    cluster.did("start", "4")
    cluster.until(lambda: health(cluster) == (0, well))
    topics(cluster, "delete", "h")
    cluster.until(lambda: figures(cluster) == (3, 0, 0))


@pytest.mark.slow
def test_brokers_stand_beside_the_controller_with_what_they_lead(cluster: ClusterCommand) -> None:
    nodes = told(cluster)["nodes"]
    assert [each["process_role"] for each in nodes] == ["controller", "broker", "broker", "broker"]

    def all_is_well() -> bool:
        controller, *brokers = told(cluster)["nodes"]
        shown = {(each["role"], each["replicas"], each["in_sync"]) for each in brokers}
        leads = sum(each["leads"] for each in brokers)
        lags = {each["lag"] for each in brokers}
        return (controller["role"], shown, leads, lags) == ("Leader", {("Broker", 3, 3)}, 3, {0})

    cluster.until(all_is_well)
    whole = "3 partitions, 0 under-replicated, 0 without a leader"
    table = cluster.until(lambda: text if whole in (text := cluster.run("status").stdout) else "")
    assert table.count("3 of 3") == 3


@pytest.mark.slow
def test_killed_broker_leaves_partitions_to_others_until_it_is_back(
    cluster: ClusterCommand,
) -> None:
    cluster.did("kill", "4")
    cluster.until(lambda: figures(cluster) == (3, 3, 0))

    def the_others_lead() -> bool:
        left = [each for each in told(cluster)["nodes"] if each["node_id"] in (2, 3)]
        return all(sum(each[of] for each in left) == 3 for of in ("leads", "under_replicated"))

    cluster.until(the_others_lead)
    cluster.until(lambda: "2 of 3" not in cluster.run("status").stdout)  # theirs are in sync
    cluster.did("start", "4")
    cluster.until(lambda: figures(cluster) == (3, 0, 0))


@pytest.mark.slow
def test_wiped_broker_copies_its_replicas_anew(cluster: ClusterCommand) -> None:
    done = cluster.run("wipe", "3")
    assert done.returncode == 0, done
    start = f"kraft-wire cluster start 3 --dir {cluster.directory}"
    assert f"to copy its replicas again:\n{start}\n" in done.stdout
    assert not list(cluster.directory.glob("node-3/t-*"))
    cluster.until(lambda: figures(cluster) == (3, 3, 0))
    cluster.did("start", "3")
    cluster.until(lambda: figures(cluster) == (3, 0, 0))
    assert len(list(cluster.directory.glob("node-3/t-*"))) == 3


@pytest.mark.slow
def test_paused_broker_is_fenced_and_goes_on(cluster: ClusterCommand) -> None:
    cluster.did("pause", "4")
    cluster.until(lambda: status(cluster, 4)["role"] == "Fenced")
    assert status(cluster, 4)["state"] == "paused"
    cluster.did("resume", "4")
    cluster.until(lambda: figures(cluster) == (3, 0, 0))


@pytest.mark.slow
def test_nodes_of_one_network_cannot_be_cut_off(cluster: ClusterCommand) -> None:
    for verb in (("partition", "2"), ("heal",)):
        done = cluster.run(*verb)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done
        assert "`kraft-wire cluster up --netns` in a new --dir" in done.stderr


@pytest.mark.slow
def test_end_is_in_order_and_the_next_up_finds_the_same_places(tmp_path: Path) -> None:
    """Each broker asks the controller before it goes, so the controller must still be there."""
    with ClusterCommand(tmp_path / "cluster", *SHORT, "--brokers", "2") as running:
        running.until(lambda: all(status(running, each)["role"] == "Broker" for each in (2, 3)))
        topics(running, "create", "t", "-p", "2")  # who leads nothing may go at once
        running.until(lambda: figures(running) == (2, 0, 0))
        before = told(running)
        assert running.down(at_once=False) == 0
        logs = running.logs()
        assert all("stopped clean=True" in text for text in logs.values()), logs
        assert sorted(taken_leave(running)) == [2, 3]
    with ClusterCommand(tmp_path / "cluster") as again:
        after = told(again)
        for key in ("cluster_id", "bootstrap_controllers", "bootstrap_servers"):
            assert after[key] == before[key]


def taken_leave(cluster: ClusterCommand) -> list[int]:
    """The brokers that the controller let go, as its log has it."""
    log = cluster.directory / "node-1" / "__cluster_metadata-0" / f"{0:020}.log"
    done = kraft_wire("dump", "--records", "--json", str(log))
    assert done.returncode == 0, done
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    changes = [each for each in lines if each.get("type") == "BROKER_REGISTRATION_CHANGE_RECORD"]
    return [
        each["data"]["brokerId"] for each in changes if each["data"].get("inControlledShutdown")
    ]


@pytest.mark.slow
def test_nodes_with_networks_of_their_own_are_cut_off_and_healed(tmp_path: Path) -> None:
    why = missing()
    if why is not None:
        pytest.skip(f"not run: {why}")
    with ClusterCommand(tmp_path / "cluster", *SHORT, "--brokers", "2", "--netns") as apart:
        apart.until(lambda: all(status(apart, each)["role"] == "Broker" for each in (2, 3)))
        topics(apart, "create", "t", "--replicas", "2,3", "-c", "min.insync.replicas=1")
        apart.until(lambda: figures(apart) == (1, 0, 0))
        follower_falls_behind_its_leader(apart)
        broker_whose_heartbeats_get_lost_is_fenced(apart)
        assert apart.down(at_once=False) == 0
        assert "stopped clean=True" in apart.logs()["node-3.log"], "the end heals first"
        assert told(apart)["cuts"] == []
        left = subprocess.run(["ip", "-4", "-o", "addr"], capture_output=True, text=True)
        assert told(apart)["bootstrap_controllers"].rpartition(".")[0] not in left.stdout


def follower_falls_behind_its_leader(apart: ClusterCommand) -> None:
    """The controller hears both, so none is fenced; the leader makes the ISR smaller.

    Not before there is something that the follower lacks.
    """
    apart.did("partition", "3", "--from", "2")
    assert len(told(apart)["cuts"]) == 2
    producer = Producer({"bootstrap.servers": status(apart, 2)["address"], "acks": "all"})
    for number in range(10):
        producer.produce("t", str(number))
    assert producer.flush(60) == 0
    apart.until(lambda: figures(apart) == (1, 1, 0))
    apart.until(lambda: status(apart, 3)["behind"] == 10)
    apart.until(lambda: status(apart, 3)["role"] == "Broker")
    apart.did("heal", "3")
    apart.until(lambda: figures(apart) == (1, 0, 0))
    apart.until(lambda: status(apart, 3)["behind"] == 0)


def broker_whose_heartbeats_get_lost_is_fenced(apart: ClusterCommand) -> None:
    """Although it hears everything, and this machine reaches it."""
    apart.did("partition", "3", "--from", "1", "--only", "out")
    assert told(apart)["cuts"] == [{"sender": 3, "receiver": 1}]
    assert "does not reach 1" in apart.run("status").stdout
    apart.until(lambda: status(apart, 3)["role"] == "Fenced")
    wrong = apart.run("partition", "2", "--only", "up")
    said = "kraft-wire cluster: --only up: expected `in` or `out`\n"
    assert (wrong.returncode, wrong.stderr) == (2, said)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--apache-brokers", "4"), "--apache-brokers 4: there are only 3 brokers"),
        (
            ("--controllers", "1", "--apache-brokers", "1"),
            "--apache-brokers 1: there are only 0 brokers",
        ),
        (
            ("--nodes", "1", "--brokers", "0"),
            "give one of --nodes and --brokers: --nodes counts combined nodes",
        ),
        (
            ("--nodes", "1", "--apache", "1"),
            "give one of --nodes and --apache-controllers: --nodes counts combined nodes",
        ),
        (
            ("--nodes", "2", "--base-port", "65533"),
            "--base-port 65533: 4 ports are needed, and the last one is 65535",
        ),
        (("--apache-controllers", "4"), "--apache-controllers 4: there are only 3 controllers"),
        (("--feature", "x=1"), "--feature: Unsupported feature: x."),
        (
            ("--feature", "x"),
            "--feature: Can't parse feature=level string x: equals sign not found.",
        ),
        (
            ("--feature", "x=one"),
            "--feature: Can't parse feature=level string x=one: unable to parse one as a short.",
        ),
        (
            ("--feature", "x=32768"),
            "--feature: Can't parse feature=level string x=32768: unable to parse 32768",
        ),
        (
            ("--feature", "eligible.leader.replicas.version=2"),
            "--feature: No feature:eligible.leader.replicas.version with feature level 2",
        ),
    ],
)
def test_cluster_that_cannot_be_is_refused_before_a_file_is_made(
    tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    done = CliRunner().invoke(app, ("up", "--dir", str(tmp_path / "new"), *arguments))
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1), done.output
    assert done.stderr.startswith(f"kraft-wire cluster: {said}"), done.stderr
    assert list(tmp_path.iterdir()) == []


def test_networks_need_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    done = CliRunner().invoke(app, ("up", "--dir", str(tmp_path), "--netns"))
    assert done.exit_code == 2
    assert done.stderr in (
        "kraft-wire cluster: --netns: root is required\n",
        "kraft-wire cluster: --netns: the command `ip` (package iproute2) is not on the PATH\n",
    )
