"""`cluster up` by default and with one node, and `cluster down`, which leaves nothing if asked."""

import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kraft_wire.cli.cluster.command import app
from kraft_wire.cli.cluster.files import HERE, CannotRun, ClusterFiles, shell_line
from kraft_wire.cli.cluster.plan import UpOptions, check_new, found_or_made
from kraft_wire.cli.cluster.ports import free_ports
from kraft_wire.cli.cluster.setup import ClusterPlan, make_cluster
from kraft_wire.cli.cluster.state import BROKER, COMBINED, CONTROLLER
from tests.cluster_command import ClusterCommand, kraft_wire


def wanted(
    controllers: int | None = None,
    brokers: int | None = None,
    nodes: int | None = None,
    base_port: int | None = None,
) -> UpOptions:
    return UpOptions(controllers, None, brokers, None, (), (), False, None, nodes, base_port)


@pytest.mark.parametrize(
    ("options", "roles"),
    [
        (wanted(), [CONTROLLER] * 3 + [BROKER] * 3),
        (wanted(controllers=2), [CONTROLLER] * 2),
        (wanted(brokers=1), [CONTROLLER] * 3 + [BROKER]),
        (wanted(brokers=0), [CONTROLLER] * 3),
        (wanted(controllers=1, brokers=2), [CONTROLLER, BROKER, BROKER]),
        (wanted(nodes=1), [COMBINED]),
        (wanted(nodes=3), [COMBINED] * 3),
    ],
)
def test_kinds_of_nodes_follow_the_options(
    options: UpOptions, roles: list[str], tmp_path: Path
) -> None:
    files = ClusterFiles(tmp_path)
    state = found_or_made(files, options)
    assert [each.role for each in state.nodes.values()] == roles
    assert found_or_made(files, options).bootstrap == state.bootstrap, (
        "the same is no contradiction"
    )
    other = wanted(nodes=2)
    with pytest.raises(CannotRun, match="holds a cluster of "):
        found_or_made(files, other)


@pytest.fixture
def taken() -> Iterator[int]:
    """A port on which a server listens."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        yield server.getsockname()[1]


def test_port_that_is_taken_is_refused_and_nothing_is_made(taken: int, tmp_path: Path) -> None:
    arguments = ["up", "--nodes", "1", "--base-port", str(taken - 1), "--dir", str(tmp_path / "d")]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 2
    said = f"kraft-wire cluster: --base-port {taken - 1}: port "
    assert done.stderr.startswith(said), done.stderr
    assert done.stderr.endswith(f"is in use; ports {taken - 1} to {taken} are needed\n")
    assert list(tmp_path.iterdir()) == []


def test_base_port_belongs_to_the_cluster(tmp_path: Path) -> None:
    files = ClusterFiles(tmp_path)
    found_or_made(files, wanted(nodes=1, base_port=(port := min(free_ports(2)))))
    assert found_or_made(files, wanted(base_port=port)).brokers[0].port == port
    with pytest.raises(CannotRun, match=f"the first port of the one in {tmp_path} is {port}"):
        found_or_made(files, wanted(base_port=port + 1))
    with pytest.raises(CannotRun, match="give one of --nodes and --brokers"):
        check_new(files, wanted(nodes=1, brokers=1))


def test_command_of_the_default_directory_names_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert shell_line(ClusterFiles(HERE), "start", "1") == "kraft-wire cluster start 1"
    elsewhere = shell_line(ClusterFiles(Path("a b")), "status")
    assert elsewhere == f"kraft-wire cluster status --dir '{tmp_path}/a b'"


def test_wipe_takes_what_is_the_cluster_s_and_leaves_the_rest(tmp_path: Path) -> None:
    files = ClusterFiles(tmp_path / "d")
    make_cluster(files, ClusterPlan(controllers=1, brokers=1))
    mine = files.directory / "notes"
    mine.touch()
    stopped = CliRunner().invoke(app, ["down", "--dir", str(files.directory)])
    assert (stopped.exit_code, stopped.stderr) == (1, "kraft-wire cluster: no node runs\n")
    wiped = CliRunner().invoke(app, ["down", "--wipe", "--dir", str(files.directory)])
    assert (wiped.exit_code, wiped.stdout) == (0, f"cluster in {files.directory}: wiped\n")
    assert list(files.directory.iterdir()) == [mine]


def test_lock_of_a_directory_that_was_wiped_meanwhile_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = ClusterFiles(tmp_path)
    lock = tmp_path / "cluster.lock"
    monkeypatch.setattr("fcntl.flock", lambda *_: lock.unlink())
    with pytest.raises(CannotRun, match="was wiped just now"), files.locked():
        pass


@pytest.mark.slow
def test_one_combined_node_serves_restarts_and_goes(tmp_path: Path) -> None:
    port = str(min(free_ports(2)))
    options = ("--nodes", "1", "--base-port", port, "--restart", "on-failure")
    with ClusterCommand(tmp_path / "cluster", *options) as running:
        server = ("--bootstrap-server", f"127.0.0.1:{port}")
        assert kraft_wire("topics", "create", "t", *server).returncode == 0
        assert kraft_wire("produce", "t", "-v", "one", *server).returncode == 0
        state = ClusterFiles(running.directory).load()
        assert state is not None
        former = state.nodes[1].pid
        assert former is not None
        os.kill(former, signal.SIGKILL)
        running.until(lambda: "node 1: killed; restarts in 1 s" in running.news)
        running.until(lambda: running.states()[1] == "running")
        read = running.until(lambda: kraft_wire("consume", "t", *server).stdout)
        assert read == "one\n"
        done = running.run("down", "--wipe")
        assert (done.returncode, done.stdout) == (0, f"cluster in {running.directory}: wiped\n")
        assert running.wait() == 0, "it ends by itself"
        assert running.news[-1] == "all nodes have stopped"
        assert not running.directory.exists()


@pytest.mark.slow
def test_down_ends_what_a_killed_up_left(tmp_path: Path) -> None:
    with ClusterCommand(tmp_path / "cluster", "--controllers", "1", "--brokers", "1") as running:
        running.until(lambda: sum("server ready" in log for log in running.logs().values()) == 2)
        state = ClusterFiles(running.directory).load()
        assert state is not None
        running.kill()
        done = running.run("down")
        assert done.returncode == 0, done
        left = [each.pid for each in state.nodes.values() if _runs(each.pid)]
        assert left == []
        logs = running.logs()
        assert all("stopping signal=SIGTERM" in text for text in logs.values()), logs


def _runs(pid: int | None) -> bool:
    shown = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True)
    return shown.stdout.strip() not in ("", "Z", "Zs")
