"""The children of `cluster up`, with programs of the shell in place of nodes; and what is cut."""

import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kraft_wire.cli.cluster import cuts, processes
from kraft_wire.cli.cluster.files import (
    BROKER,
    CannotRun,
    ClusterFiles,
    ClusterState,
    NetworkCut,
    NodeState,
)
from kraft_wire.cli.cluster.processes import ClusterProcesses
from tests.waiting import until

SLEEPING = "exec sleep 1000"
DEAF = "trap '' TERM; echo deaf; while :; do sleep 0.02; done"


class Network:
    """Takes down what is asked of it."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, list[NetworkCut]]] = []

    def cut(self, those: list[NetworkCut]) -> None:
        self.calls.append(("cut", list(those)))

    def heal(self, those: list[NetworkCut]) -> None:
        self.calls.append(("heal", list(those)))

    def command(self, node_id: int, command: list[str]) -> list[str]:
        return ["env", f"NODE={node_id}", *command]


class Up:
    """Two controllers and a broker, each a script."""

    def __init__(self, directory: Path, network: Network | None = None) -> None:
        self.scripts = dict.fromkeys((1, 2, 101), SLEEPING)
        self.files = ClusterFiles(directory)
        nodes = {
            number: NodeState(
                number, "kraft-wire", 9000 + number, BROKER if number > 100 else "controller"
            )
            for number in self.scripts
        }
        self.state = ClusterState("cluster", nodes=nodes)
        self.files.save(self.state)
        self.processes = ClusterProcesses(self.files, self.state, None, network)  # type: ignore[arg-type]  # what is asked of a network

    def start(self, *node_ids: int) -> None:
        for number in node_ids:
            self.processes.start(number)
        self.processes.news.clear()

    def looked(self) -> list[str]:
        """Look until there is news."""

        def look() -> list[str]:
            self.processes.look()
            return self.processes.news

        news = until(look)
        self.processes.news = []
        return news

    def saved(self, node_id: int) -> NodeState:
        state = self.files.load()
        assert state is not None
        return state.nodes[node_id]

    def pid(self, node_id: int) -> int:
        pid = self.state.nodes[node_id].pid
        assert pid is not None
        return pid


@pytest.fixture
def up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Up]]:
    made: list[Up] = []

    def make(network: Network | None = None) -> Up:
        found = Up(tmp_path, network)
        monkeypatch.setattr(
            processes,
            "command_of",
            lambda files, node, jars: ["sh", "-c", found.scripts[node.node_id]],
        )
        made.append(found)
        return found

    yield make
    for each in made:
        each.processes.stop_all(is_urgent=lambda: True)


def test_a_started_node_is_a_process_of_its_own_that_writes_to_its_log(
    up: Callable[..., Up],
) -> None:
    cluster = up()
    cluster.scripts[1] = "pwd; echo oops >&2; cat; exec sleep 1000"
    cluster.processes.start(1)
    node = cluster.state.nodes[1]
    assert cluster.processes.news == [f"node 1: started, process {node.pid}, 127.0.0.1:9001"]
    assert (node.condition, node.note) == ("running", "")
    assert os.getsid(cluster.pid(1)) == node.pid, "Ctrl-C does not reach it"
    log = cluster.files.log(1)
    until(lambda: log.read_text() == f"{cluster.files.directory}\noops\n")


@pytest.mark.parametrize(
    ("script", "number", "words"),
    [
        (SLEEPING, signal.SIGKILL, "killed"),
        (SLEEPING, signal.SIGTERM, "stopped"),
        ("trap 'exit 143' TERM; while :; do sleep 0.02; done", signal.SIGTERM, "stopped"),
        ("exit 0", None, "stopped"),
        (
            "echo first; echo 'out of luck'; echo; exit 3",
            None,
            "exited with code 3: out of luck",
        ),
        ("exit 3", None, "exited with code 3: its log is empty"),
    ],
)
def test_a_node_that_ended_stays_down_and_it_is_said_why(
    up: Callable[..., Up], script: str, number: signal.Signals | None, words: str
) -> None:
    cluster = up()
    cluster.scripts[2] = script
    cluster.start(1, 2)
    if number is not None:
        until(lambda: Path(f"/proc/{cluster.pid(2)}/comm").read_text() in ("sleep\n", "sh\n"))
        until(lambda: "trap" not in script or _handles(cluster.pid(2), number))
        os.kill(cluster.pid(2), number)
    start = f"kraft-wire cluster start 2 --dir {cluster.files.directory}"
    note = f"{words}; to start it again: {start}"
    assert cluster.looked() == [f"node 2: {note}"]
    node = cluster.saved(2)
    assert (node.pid, node.is_paused, node.note, node.condition) == (None, False, note, "down")
    assert cluster.saved(1).condition == "running"


def _handles(pid: int, number: signal.Signals) -> bool:
    (line,) = [
        each for each in Path(f"/proc/{pid}/status").read_text().splitlines() if "SigCgt" in each
    ]
    return bool(int(line.split()[1], 16) >> (number - 1) & 1)


def test_a_paused_node_is_seen_and_comes_back(up: Callable[..., Up]) -> None:
    cluster = up()
    cluster.start(1)
    os.kill(cluster.pid(1), signal.SIGSTOP)
    assert cluster.looked() == ["node 1: paused"]
    assert cluster.saved(1).condition == "paused"
    os.kill(cluster.pid(1), signal.SIGCONT)
    assert cluster.looked() == ["node 1: resumed"]
    assert cluster.saved(1).condition == "running"


def test_a_node_is_started_when_it_is_asked_for_and_only_where_it_does_not_run(
    up: Callable[..., Up],
) -> None:
    cluster = up()
    cluster.start(1)
    before = cluster.pid(1)
    for number in (1, 101):
        cluster.files.start_request(number).touch()
    (line,) = cluster.looked()
    assert line.startswith("node 101: started, process ")
    assert (cluster.pid(1), cluster.saved(101).condition) == (before, "running")
    assert not any(cluster.files.start_request(number).exists() for number in (1, 101))


def test_what_is_cut_and_healed_is_news_once(up: Callable[..., Up]) -> None:
    cluster = up()
    for cut in (NetworkCut(1, 2), NetworkCut(2, 1)):
        cluster.files.cut(cut).touch()
    assert cluster.looked() == [
        "node 1: does not reach node 2",
        "node 2: does not reach node 1",
    ]
    cluster.processes.look()
    assert cluster.processes.news == []
    cluster.files.cut(NetworkCut(2, 1)).unlink()
    assert cluster.looked() == ["node 2: reaches node 1 again"]
    assert cluster.state.cuts == [NetworkCut(1, 2)]


def test_everybody_is_stopped_gracefully_the_brokers_first(
    up: Callable[..., Up], tmp_path: Path
) -> None:
    cluster = up()
    for number in cluster.scripts:
        cluster.scripts[number] = (
            f"trap 'echo {number} >> order; exit 0' TERM; while :; do sleep 0.02; done"
        )
    cluster.start(1, 2, 101)
    for number in cluster.scripts:
        until(lambda number=number: _handles(cluster.pid(number), signal.SIGTERM))
    os.kill(cluster.pid(101), signal.SIGSTOP)
    cluster.processes.stop_all(is_urgent=lambda: False)
    order = (tmp_path / "order").read_text().split()
    assert order[0] == "101", "it asks the controllers before it goes, even if it was paused"
    assert sorted(order) == ["1", "101", "2"]
    for number in cluster.scripts:
        node = cluster.saved(number)
        assert (node.condition, node.note) == ("down", "")


def test_a_node_that_does_not_listen_is_killed_when_it_is_urgent(up: Callable[..., Up]) -> None:
    cluster = up()
    cluster.scripts[1] = DEAF
    cluster.start(1, 2)
    until(lambda: "deaf" in cluster.files.log(1).read_text())
    asked = 0

    def is_urgent() -> bool:
        nonlocal asked
        asked += 1
        return asked > 3

    pid = cluster.pid(1)
    cluster.processes.stop_all(is_urgent=is_urgent)
    assert asked > 3
    assert not Path(f"/proc/{pid}").exists()


def test_patience_ends(up: Callable[..., Up], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_STOP_SECONDS", 0.1)
    cluster = up()
    cluster.scripts[1] = DEAF
    cluster.start(1)
    until(lambda: "deaf" in cluster.files.log(1).read_text())
    cluster.processes.stop_all(is_urgent=lambda: False)
    assert cluster.saved(1).condition == "down"


def test_a_cluster_is_healed_before_it_ends(up: Callable[..., Up]) -> None:
    network = Network()
    cluster = up(network)
    cut = NetworkCut(1, 2)
    cluster.files.cut(cut).touch()
    cluster.processes.look()
    cluster.processes.heal()
    assert network.calls == [("heal", [cut])]
    assert (cluster.state.cuts, cluster.files.cuts()) == ([], [])
    up().processes.heal()


def test_a_node_runs_inside_its_network(up: Callable[..., Up]) -> None:
    cluster = up(Network())
    cluster.scripts[2] = "echo node $NODE; exec sleep 1000"
    cluster.start(2)
    until(lambda: cluster.files.log(2).read_text() == "node 2\n")


# -- cuts --------------------------------------------------------------------------------------


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch) -> Network:
    found = Network()
    monkeypatch.setattr(cuts, "missing", lambda: None)
    monkeypatch.setattr(cuts.ClusterNetwork, "of", lambda state: found)
    return found


@pytest.mark.parametrize(
    ("others", "only", "expected"),
    [
        ((), "", [(1, 2), (1, 101), (2, 1), (101, 1)]),
        ((2,), "", [(1, 2), (2, 1)]),
        ((2, 101), "in", [(2, 1), (101, 1)]),
        ((101,), "out", [(1, 101)]),
    ],
)
def test_a_node_is_cut_off_from_all_or_from_some(
    up: Callable[..., Up],
    network: Network,
    others: tuple[int, ...],
    only: str,
    expected: list[tuple[int, int]],
) -> None:
    cluster = up()
    cluster.state.network = 7
    nodes = cluster.state.nodes
    chosen = [nodes[each] for each in others]
    with cluster.files.locked():
        found = cuts.cut_off(cluster.files, cluster.state, nodes[1], chosen, only)
    assert found == expected
    assert network.calls == [("cut", expected)]
    assert cluster.files.cuts() == sorted(expected)


@pytest.mark.parametrize(
    ("others", "only", "words"),
    [
        ((), "up", "--only up: expected `in` or `out`"),
        ((1,), "", "node 1 cannot be cut off from itself"),
    ],
)
def test_what_cannot_be_cut_leaves_nothing_cut(
    up: Callable[..., Up], network: Network, others: tuple[int, ...], only: str, words: str
) -> None:
    cluster = up()
    cluster.state.network = 7
    nodes = cluster.state.nodes
    chosen = [nodes[each] for each in others]
    with cluster.files.locked(), pytest.raises(CannotRun, match=f"^{words}$"):
        cuts.cut_off(cluster.files, cluster.state, nodes[1], chosen, only)
    assert (network.calls, cluster.files.cuts()) == ([], [])


# -- the state file ----------------------------------------------------------------------------


def test_state_that_is_saved_is_loaded(tmp_path: Path) -> None:
    files = ClusterFiles(tmp_path)
    assert files.load() is None
    nodes = {3: NodeState(3, "apache", 9093, "controller", "10.0.0.3", 17, True, "note")}
    state = ClusterState("id", {"a": "b"}, {"metadata.version": 30}, 9, nodes)
    files.save(state)
    assert files.load() == state
    assert [path.name for path in tmp_path.iterdir()] == ["cluster.json"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        pytest.param("[" * 9_999, id="deep"),
        '{"cluster_id": 1, "overrides": {}, "nodes": [{}]}',
    ],
)
def test_file_that_is_no_state_is_one_line(tmp_path: Path, text: str) -> None:
    files = ClusterFiles(tmp_path)
    files.state_file.write_text(text)
    with pytest.raises(CannotRun, match=r"cluster\.json is not a cluster's state file: "):
        files.load()
    files.state_file.unlink()
    files.state_file.mkdir()
    with pytest.raises(CannotRun, match=r"cluster\.json: Is a directory"):
        files.load()


def test_a_process_runs_only_while_its_command_names_the_nodes_file(up: Callable[..., Up]) -> None:
    cluster = up()
    node = cluster.state.nodes[1]
    assert not cluster.files.runs(node)
    cluster.scripts[1] = f"sleep 1000 # {cluster.files.properties(1)}"
    cluster.start(1)
    until(lambda: cluster.files.runs(node))  # until it has become the script, it is this program
    assert json.loads(cluster.files.state_file.read_text())["cluster_id"] == "cluster"
    node.pid = os.getpid()
    assert not cluster.files.runs(node), "another program has the number now"
    node.pid = cluster.processes._children[1].pid
