"""``kraft-wire cluster``: real processes, as a person would start, hurt and stop them."""

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kraft_wire.cli.cluster.command import app
from kraft_wire.cli.cluster.files import ClusterFiles, NodeState
from kraft_wire.cli.cluster.setup import ClusterPlan, make_cluster
from tests.cluster_command import ClusterCommand

SHORT = [
    *("--controllers", "3"),
    *("--override", "controller.quorum.election.timeout.ms=1500"),
    *("--override", "controller.quorum.fetch.timeout.ms=3000"),
]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterCommand]:
    with ClusterCommand(tmp_path_factory.mktemp("home") / "cluster", *SHORT) as running:
        yield running


def refused(*arguments: str) -> tuple[int, str]:
    """Exit code and the one line of a command that cannot do its work."""
    done = CliRunner().invoke(app, arguments)
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.output
    assert lines[0].startswith("kraft-wire cluster: ")
    return done.exit_code, lines[0]


def pids(cluster: ClusterCommand) -> dict[int, int | None]:
    """Process ids as the state file says."""
    state = ClusterFiles(cluster.directory).load()
    assert state is not None
    return {node_id: node.pid for node_id, node in state.nodes.items()}


@pytest.mark.slow
def test_killed_leader_stays_down_until_it_is_started(cluster: ClusterCommand) -> None:
    former = cluster.described()["leader_id"]
    cluster.did("kill", "leader")
    assert cluster.states()[former] == "down"
    leader = cluster.until(lambda: cluster.described()["leader_id"])
    assert leader != former
    assert cluster.run("kill", str(former)).returncode == 1
    start = f"kraft-wire cluster start {former} --dir {cluster.directory}"
    stays = f"node {former}: killed; to start it again: {start}"
    assert stays in cluster.until(lambda: cluster.news if stays in cluster.news else None)
    cluster.did("start", str(former))
    assert cluster.run("start", str(former)).returncode == 1
    assert set(cluster.states().values()) == {"running"}


@pytest.mark.slow
def test_paused_node_is_shown_and_goes_on(cluster: ClusterCommand) -> None:
    leader = cluster.described()["leader_id"]
    other = next(node_id for node_id in (1, 2, 3) if node_id != leader)
    cluster.did("pause", str(other))
    cluster.until(lambda: cluster.states()[other] == "paused")
    cluster.did("resume", str(other))
    cluster.until(lambda: cluster.states()[other] == "running")


@pytest.mark.slow
def test_wiped_node_observes_until_its_new_disk_is_given_the_vote(cluster: ClusterCommand) -> None:
    leader = cluster.described()["leader_id"]
    wiped = next(node_id for node_id in (3, 2) if node_id != leader)
    lost = {each["node_id"]: each["directory_id"] for each in cluster.described()["voters"]}
    done = cluster.run("wipe", str(wiped))
    assert done.returncode == 0, done
    cluster.did("start", str(wiped))

    def observes() -> bool:
        return [each["node_id"] for each in cluster.described()["observers"]] == [wiped]

    cluster.until(observes)
    (observer,) = cluster.described()["observers"]
    assert observer["directory_id"] != lost[wiped]
    assert observer["directory_id"] in done.stdout
    identity = ("-i", str(wiped), "-d", lost[wiped])
    dry = cluster.quorum("remove-voter", *identity, "--dry-run")
    assert dry.stdout.startswith("DRY RUN of removing"), dry
    assert len(cluster.described()["voters"]) == 3
    assert cluster.quorum("remove-voter", *identity).returncode == 0
    again = cluster.quorum("remove-voter", *identity)
    assert (again.returncode, again.stderr.count("\n")) == (1, 1)
    assert "VOTER_NOT_FOUND" in again.stderr
    properties = str(ClusterFiles(cluster.directory).properties(wiped))
    cluster.until(lambda: cluster.quorum("add-voter", "--config", properties).returncode == 0)
    voters = {each["node_id"]: each["directory_id"] for each in cluster.described()["voters"]}
    assert voters == {**lost, wiped: observer["directory_id"]}
    twice = cluster.quorum("add-voter", "--config", properties)
    assert twice.returncode == 1
    assert "DUPLICATE_VOTER" in twice.stderr


@pytest.mark.slow
def test_watch_prints_a_look_at_a_time(cluster: ClusterCommand) -> None:
    done = cluster.quorum("watch", "--count", "2", "--interval", "0.05", "--json")
    assert done.returncode == 0, done
    looks = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(looks) == 2
    assert all(len(each["voters"]) == 3 for each in looks)
    shown = cluster.quorum("watch", "--count", "1")
    assert "leader" in shown.stdout.splitlines()[1]


@pytest.mark.slow
def test_second_up_is_refused_and_the_end_is_clean(tmp_path: Path) -> None:
    running = ClusterCommand(tmp_path / "cluster", "--controllers", "1")
    with running:
        code, line = refused("up", "--dir", str(running.directory))
        assert code == 2
        assert "runs in" in line
        (node,) = pids(running).values()
        assert node is not None
        assert running.down(at_once=False) == 0
        with pytest.raises(ProcessLookupError):
            os.kill(node, 0)
        assert running.news[-1] == "all nodes have stopped"
        log = (running.directory / "node-1.log").read_text()
        assert "stopping signal=SIGTERM" in log, log
        code, line = refused("start", "1", "--dir", str(running.directory))
        assert (code, "no `kraft-wire cluster up` runs" in line) == (2, True)
        before = ClusterFiles(running.directory).load()
        running.start()
        after = ClusterFiles(running.directory).load()
        assert before is not None
        assert after is not None
        assert after.bootstrap == before.bootstrap


@pytest.mark.slow
def test_nodes_of_a_killed_up_are_found_and_ended(tmp_path: Path) -> None:
    with ClusterCommand(tmp_path / "cluster", "--controllers", "1") as running:
        running.kill()  # its nodes go on without it
        code, line = refused("up", "--dir", str(running.directory))
        assert (code, "still runs as process" in line) == (2, True)
        running.did("kill", "1")
        running.start()


@pytest.mark.slow
def test_node_that_cannot_start_says_why_and_a_closed_terminal_ends_all(tmp_path: Path) -> None:
    broken = ("--controllers", "2", "--override", "num.partitions=many")
    running = ClusterCommand(tmp_path / "cluster", *broken)
    running.begin()
    try:
        ended = "exited with code 2: kraft-wire server: "
        running.until(lambda: sum(ended in line for line in running.news) == 2)
        assert set(running.states().values()) == {"down"}
        assert "num.partitions=many" in running.news[-1]
    finally:
        assert running.down(at_once=False, number=signal.SIGHUP) == 0


def test_signals_go_only_to_the_nodes_own_process(tmp_path: Path) -> None:
    stranger = NodeState(1, "kraft-wire", 1, pid=os.getpid())
    assert not ClusterFiles(tmp_path).runs(stranger), "the id was used again"


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("status",), "there is no cluster in"),
        (("kill", "1"), "there is no cluster in"),
        (("up", "--override", "x"), "is not KEY=VALUE"),
        (("up", "--override", " =x"), "is not KEY=VALUE"),
        (("up", "--override", "node.id=7"), "--override node.id: `up` sets it for each node"),
        (("up", "--override", "log.dirs=/d"), "--override log.dirs: `up` sets it for each node"),
        (("up", "--apache", "4"), "there are only 3 controllers"),
        (("down",), "there is no cluster in"),
    ],
)
def test_bad_input_is_one_line(tmp_path: Path, arguments: tuple[str, ...], part: str) -> None:
    code, line = refused(*arguments, "--dir", str(tmp_path))
    assert code == 2
    assert part in line


@pytest.mark.parametrize("name", ["one,two", "\udcff"])
def test_directory_that_no_file_of_properties_can_name_is_refused(
    tmp_path: Path, name: str
) -> None:
    code, line = refused("up", "--dir", str(tmp_path / name))
    assert (code, "a path in log.dirs must be text" in line) == (2, True)
    assert list((tmp_path / name).glob("node-*")) == []


def test_directory_that_is_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    code, line = refused("up", "--dir", str(tmp_path / "file"))
    assert (code, line) == (2, f"kraft-wire cluster: {tmp_path}/file: File exists")


def test_apache_nodes_are_refused_without_java_and_without_jars(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = ("up", "--apache", "1", "--dir", str(tmp_path))
    programs = tmp_path / "programs"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.delenv("KRAFT_WIRE_APACHE_JARS", raising=False)
    assert "java is not on the PATH" in refused(*wanted)[1]
    (programs / "java").touch(0o755)
    assert "--apache-jars or KRAFT_WIRE_APACHE_JARS" in refused(*wanted)[1]
    assert "has no kafka_2.*.jar" in refused(*wanted, "--apache-jars", str(programs))[1]


def test_secured_cluster_is_refused_before_a_file_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = ("up", "--secure", "--dir", str(tmp_path / "c"))
    code, line = refused(*wanted, "--feature", "metadata.version=7")
    assert (code, "--secure needs the metadata.version of 3.5-IV2 or later" in line) == (2, True)
    monkeypatch.setitem(sys.modules, "cryptography.x509", None)
    code, line = refused(*wanted)
    assert (code, "--secure needs the package cryptography; install: " in line) == (2, True)
    assert not (tmp_path / "c").exists()


def test_open_cluster_is_not_secured_afterwards(tmp_path: Path) -> None:
    make_cluster(ClusterFiles(tmp_path), ClusterPlan(controllers=1))
    code, line = refused("up", "--secure", "--dir", str(tmp_path))
    assert (code, f"the listeners of {tmp_path} are open: use another --dir" in line) == (2, True)


def test_damaged_state_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "cluster.json").write_text("{}")
    code, line = refused("status", "--dir", str(tmp_path))
    assert (code, "cluster.json is not a cluster's state file" in line) == (2, True)
