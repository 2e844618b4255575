"""The verbs of `cluster` on a directory of played nodes: signals, requests to `up`, and lines."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from kraft_wire.cli.cluster import command, health, network, nodes
from kraft_wire.cli.cluster.command import app
from kraft_wire.cli.cluster.facts import ClusterFacts
from kraft_wire.cli.cluster.files import CannotRun, ClusterFiles
from kraft_wire.cli.cluster.health import checks_of
from kraft_wire.cli.cluster.network import ClusterNetwork, free_network, host_in, missing
from kraft_wire.cli.cluster.state import BROKER, ClusterState, NetworkCut, NodeState
from kraft_wire.cli.quorum.admin import QuorumRefused
from kraft_wire.cli.quorum.facts import QuorumFacts, ReplicaFacts
from kraft_wire.cli.topics.partitions import DescribedPartition
from kraft_wire.client import BrokerConnectionError
from kraft_wire.model import ZERO_UUID

LEADS_2 = QuorumFacts("c", 2, 5, 88, (), ())
NAME = "kwa56145"
"""Of the network of cluster `id`: the start of its SHA-256, as `sha256sum` prints it."""


class Played:
    """A directory of two controllers and two brokers; node 102 is down. `up` does what it must."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.files = ClusterFiles(directory)
        self.alive = {11, 12, 13}
        self.sent: list[tuple[int, int]] = []
        self.requests: list[str] = []
        self.is_supervised = True
        self.facts = ClusterFacts()
        state = ClusterState("id", network=3)
        for node_id, pid in ((1, 11), (2, 12), (101, 13), (102, None)):
            role = BROKER if node_id > 100 else "controller"
            state.nodes[node_id] = NodeState(node_id, "kraft-wire", 9000 + node_id, role, pid=pid)
        self.files.save(state)
        # In this module alone: a pause of another thread would take requests, too.
        monkeypatch.setattr(nodes, "os", SimpleNamespace(kill=self._kill))
        clock = SimpleNamespace(sleep=lambda _: self._serve(), monotonic=time.monotonic)
        monkeypatch.setattr(nodes, "time", clock)
        monkeypatch.setattr(nodes, "dial_as_admin", lambda files, state: None)
        monkeypatch.setattr(nodes, "ClusterQuestions", self._questions)
        monkeypatch.setattr(ClusterFiles, "runs", lambda _, node: node.pid in self.alive)
        monkeypatch.setattr(ClusterFiles, "is_supervised", property(lambda _: self.is_supervised))

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """Run a verb; return its exit code, output and errors."""
        done = CliRunner().invoke(app, [*arguments, "--dir", str(self.files.directory)])
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return done.exit_code, done.stdout, done.stderr

    def _kill(self, pid: int, number: int) -> None:
        self.sent.append((pid, number))
        if pid not in self.alive:
            raise ProcessLookupError
        if number in (signal.SIGTERM, signal.SIGKILL):
            self.alive.discard(pid)

    def _serve(self) -> None:
        """Take requests as `up` does, and write down who has ended."""
        for path in sorted(self.files.directory.glob("node-*.st*")):
            self.requests.append(path.name)
            path.unlink()
        state = self.files.load()
        assert state is not None
        for node in state.nodes.values():
            node.pid = node.pid if node.pid in self.alive else None
        self.files.save(state)

    def _questions(self, state: ClusterState, *, patience_s: float, answer_s: float) -> Any:
        assert answer_s == 1.0
        played = self

        class Questions:
            def quorum(self) -> QuorumFacts | None:
                assert patience_s == 2.0
                return played.facts.quorum

            def ask(self) -> ClusterFacts:
                assert patience_s == 0.0
                return played.facts

        return Questions()


@pytest.fixture
def played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Played:
    """A directory of played nodes."""
    return Played(tmp_path, monkeypatch)


TERM, CONT, KILL, STOP = signal.SIGTERM, signal.SIGCONT, signal.SIGKILL, signal.SIGSTOP


@pytest.mark.parametrize(
    ("words", "code", "text", "sent", "requests"),
    [
        ("stop 101", 0, "node 101: stopped", [(13, TERM), (13, CONT)], ["node-101.stop"]),
        ("kill 2", 0, "node 2: killed", [(12, KILL)], ["node-2.stop"]),
        ("pause 1", 0, "node 1: paused", [(11, STOP)], []),
        ("resume 1", 0, "node 1: resumed", [(11, CONT)], []),
        (
            "restart 2",
            0,
            "node 2: restarted",
            [(12, TERM), (12, CONT)],
            ["node-2.stop", "node-2.start"],
        ),
        ("start 102", 0, "node 102: started", [], ["node-102.start"]),
        ("start 101", 1, "kraft-wire cluster: node 101 runs already", [], []),
        ("pause 102", 1, "kraft-wire cluster: node 102 is down", [], ["node-102.stop"]),
        ("stop leader", 1, "kraft-wire cluster: there is no leader", [], []),
        *(
            (
                f"kill {name}",
                2,
                f"kraft-wire cluster: {name!r} is not a node of this cluster; its nodes are"
                " 1, 2, 101, 102",
                [],
                [],
            )
            for name in ("3", "two", "²")
        ),
    ],
)
def test_verb_sends_signals_and_requests(
    played: Played,
    words: str,
    code: int,
    text: str,
    sent: list[tuple[int, int]],
    requests: list[str],
) -> None:
    ended, out, err = played.run(*words.split())
    assert (ended, out if code == 0 else err) == (code, f"{text}\n")
    assert (played.sent, played.requests) == (sent, requests)


def test_leader_is_a_node_and_a_leader_of_elsewhere_is_none(played: Played) -> None:
    played.facts = ClusterFacts(LEADS_2)
    assert played.run("pause", "leader") == (0, "node 2: paused\n", "")
    played.facts = ClusterFacts(QuorumFacts("c", 9, 5, 88, (), ()))
    assert played.run("pause", "leader")[0] == 1
    played.alive.clear()
    played.facts = ClusterFacts(LEADS_2)
    assert played.run("pause", "leader")[0] == 1, "no node runs"


def test_without_up_a_node_is_stopped_and_not_started(played: Played) -> None:
    played.is_supervised = False
    assert played.run("kill", "1")[:2] == (0, "node 1: killed\n")
    directory = played.files.directory
    assert played.run("start", "1") == (
        2,
        "",
        f"kraft-wire cluster: no `kraft-wire cluster up` runs in {directory} to start the node\n",
    )
    assert played.run("pause", "1")[0] == 1
    assert (played.requests, sorted(directory.glob("*.st*"))) == ([], [])
    (directory / "cluster.json").unlink()
    text = f"kraft-wire cluster: there is no cluster in {directory} (see --dir)\n"
    assert played.run("status") == (2, "", text)


def test_status_is_a_table_or_json_and_asks_nobody_that_is_down(played: Played) -> None:
    played.facts = ClusterFacts(LEADS_2)
    shown = json.loads(played.run("status", "--json")[1])
    assert (shown["leader_id"], shown["leader_epoch"], shown["high_watermark"]) == (2, 5, 88)
    assert [each["state"] for each in shown["nodes"]] == ["running"] * 3 + ["down"]
    table = played.run("status")[1].splitlines()
    assert table[0].strip() == "cluster id   leader 2   epoch 5   high watermark 88"
    assert table[2].split()[:5] == ["1", "kraft-wire", "127.0.0.1:9001", "11", "running"]
    played.alive.clear()
    shown = json.loads(played.run("status", "--json")[1])
    assert (shown["leader_id"], {each["state"] for each in shown["nodes"]}) == (None, {"down"})


def test_wiped_node_is_told_how_it_comes_back(
    played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    reformatted: list[int] = []

    def reformat(files: ClusterFiles, state: ClusterState, node_id: int) -> bytes:
        reformatted.append(node_id)
        return ZERO_UUID

    monkeypatch.setattr(command, "reformat", reformat)
    where = f"--dir {played.files.directory}"
    wiped = "wiped; its new directory id is AAAAAAAAAAAAAAAAAAAAAA"
    assert played.run("wipe", "102")[:2] == (
        0,
        f"node 102: {wiped}\nto copy its replicas again:\nkraft-wire cluster start 102 {where}\n",
    )
    assert (played.sent, played.requests) == ([], ["node-102.stop"])
    assert played.run("wipe", "1")[:2] == (
        0,
        f"node 1: {wiped}\nto make it vote again:\nkraft-wire cluster start 1 {where}\n"
        "kraft-wire quorum remove-voter -c 127.0.0.1:9001,127.0.0.1:9002 -i 1\n"
        "kraft-wire quorum add-voter -c 127.0.0.1:9001,127.0.0.1:9002"
        f" --config {played.files.directory}/node-1.properties\n",
    )
    assert (played.sent, reformatted) == ([(11, KILL)], [102, 1])


def test_waiting_ends_with_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter((0.0, 1.5, 1.6))
    clock = SimpleNamespace(sleep=lambda _: None, monotonic=lambda: next(now))
    monkeypatch.setattr(nodes, "time", clock)
    with pytest.raises(CannotRun, match=r"^it does not exit within 1\.5 s$"):
        nodes.wait_until(lambda: False, "it does not exit", 1.5)


class Ip:
    """Notes the arguments of `ip`; a command that begins as one that fails, fails."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.commands: list[str] = []
        self.failing = ("?", "")
        self.addresses = ""
        monkeypatch.setattr(network.subprocess, "run", self._run)  # type: ignore[attr-defined]  # a module that it imports
        monkeypatch.setattr(network.shutil, "which", lambda _: "/sbin/ip")  # type: ignore[attr-defined]  # a module that it imports
        monkeypatch.setattr(os, "geteuid", lambda: 0)
        monkeypatch.setattr(os, "getpid", lambda: 77)

    def _run(self, line: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        assert options == {
            "capture_output": True,
            "text": True,
            "check": False,
            "start_new_session": True,
        }
        assert line[0] == "ip"
        self.commands.append(" ".join(line[1:]))
        start, said = self.failing
        failed = self.commands[-1].startswith(start)
        return subprocess.CompletedProcess(line, int(failed), self.addresses, said)


@pytest.fixture
def ip(monkeypatch: pytest.MonkeyPatch) -> Ip:
    """The command `ip`, played."""
    return Ip(monkeypatch)


def test_networks_are_made_cut_healed_and_removed(ip: Ip) -> None:
    own = ClusterNetwork.of(ClusterState("id", network=3, nodes={1: NodeState(1, "x", 9)}))
    name = NAME
    assert own.command(1, ["a", "b"]) == ["ip", "netns", "exec", f"{name}n1", "a", "b"]
    removal = [f"netns del {name}n1", f"link del {name}v1", f"link del {name}"]
    own.make()
    assert ip.commands == [
        *removal,
        f"link add {name} type bridge",
        f"addr add 10.92.3.254/24 dev {name}",
        f"link set {name} up",
        f"netns add {name}n1",
        f"link add {name}v1 type veth peer name eth0 netns {name}n1",
        f"link set {name}v1 master {name} up",
        f"-n {name}n1 link set eth0 address 02:00:0a:5c:03:01",
        f"-n {name}n1 addr add 10.92.3.1/24 dev eth0",
        f"-n {name}n1 link set lo up",
        f"-n {name}n1 link set eth0 up",
    ]
    ip.commands.clear()
    own.cut([NetworkCut(1, 101), NetworkCut(101, 1)])
    own.heal([NetworkCut(1, 101)])
    point = "neigh replace 10.92.3.{} lladdr {} dev eth0 nud permanent"
    assert ip.commands == [
        f"-n {name}n1 {point.format(101, '02:00:00:00:de:ad')}",
        f"-n {name}n101 {point.format(1, '02:00:00:00:de:ad')}",
        f"-n {name}n1 {point.format(101, '02:00:0a:5c:03:65')}",
    ]
    ip.commands.clear()
    own.remove()
    assert ip.commands == removal


def test_network_is_free_and_can_be_made(ip: Ip, monkeypatch: pytest.MonkeyPatch) -> None:
    first = free_network("id")
    assert ip.commands == ["-4 -o addr"]
    ip.addresses = f"2: eth0 inet {host_in(first, 254)}/24 scope"
    assert free_network("id") == (first + 1) % 250
    ip.addresses = "".join(f" 10.92.{each}.254/24" for each in range(250))
    with pytest.raises(CannotRun, match=r"^all networks of 10\.92\.0\.0/16 are in use"):
        free_network("id")
    ip.commands.clear()
    assert missing() is None
    assert ip.commands == ["netns add kw77p", "netns del kw77p"]
    ip.failing = ("netns add", "no \n right\n")
    assert missing() == "ip netns add: no right"
    ip.failing = ("link add", "")
    with pytest.raises(CannotRun, match=r"^ip link add \S+ type bridge: exit code 1$"):
        ClusterNetwork("id", 3, ()).make()
    monkeypatch.setattr(os, "geteuid", lambda: 1)
    assert missing() == "root is required"
    monkeypatch.setattr(network.shutil, "which", lambda _: None)  # type: ignore[attr-defined]  # a module that it imports
    assert missing() == "the command `ip` (package iproute2) is not on the PATH"


def test_partition_and_heal_list_directions(played: Played, ip: Ip) -> None:
    def lines(words: str, text: str) -> str:
        return "".join(f"node {a}: {text} node {b}{end}\n" for a, b, end in pairs(words))

    def pairs(words: str) -> list[tuple[str, str, str]]:
        return [(*each.split(">"), "") for each in words.split()]  # type: ignore[misc]  # pairs of a split text

    cut = "does not reach"
    assert played.run("partition", "1", "--from", "2") == (0, lines("1>2 2>1", cut), "")
    only_in = played.run("partition", "101", "--only", "in")
    assert only_in == (0, lines("1>101 2>101 102>101", cut), "")
    assert played.run("partition", "2", "--from", "102", "--only", "out")[1] == lines("2>102", cut)
    all_cuts = [(1, 2), (1, 101), (2, 1), (2, 101), (2, 102), (102, 101)]
    assert played.files.cuts() == all_cuts
    assert played.run("heal", "102")[1] == (
        "node 2: reaches node 102 again\nnode 102: reaches node 101 again\n"
    )
    assert played.files.cuts() == [each for each in all_cuts if 102 not in each]
    assert len(played.run("heal")[1].splitlines()) == 4
    assert played.files.cuts() == []
    for words, text in (
        ("1 --only up", "--only up: expected `in` or `out`"),
        ("1 --from 1", "node 1 cannot be cut off from itself"),
    ):
        assert played.run("partition", *words.split()) == (2, "", f"kraft-wire cluster: {text}\n")
    ip.failing = ("netns add", "no right")
    assert played.run("heal")[2] == (
        "kraft-wire cluster: nodes cannot be partitioned: ip netns add: no right\n"
    )
    played.is_supervised = False
    directory = played.files.directory
    assert played.run("heal")[2] == (
        f"kraft-wire cluster: no `kraft-wire cluster up` runs in {directory}\n"
    )


class Brokers:
    """A cluster of brokers, of which some do not answer."""

    def __init__(self, *silent: int) -> None:
        self.silent = silent

    def broker_ids(self) -> list[int]:
        return [1, 2, 3]

    def broker(self, broker_id: int) -> None:
        if broker_id in self.silent:
            raise BrokerConnectionError(f"broker {broker_id} is silent")

    def any_broker(self) -> None:
        """The played answers need no connection."""


def voter(node_id: int, caught_up_ms: int | None) -> ReplicaFacts:
    """A voter that caught up at a time."""
    return ReplicaFacts(node_id, None, 0, 0, caught_up_ms, ())


def quorum_of(*voters: ReplicaFacts, leader: int = 1) -> Callable[[object], QuorumFacts]:
    """An admin's answer."""
    return lambda _: QuorumFacts("c", leader, 7, 0, voters, ())


@pytest.mark.parametrize(
    ("silent", "voters", "ok", "details"),
    [
        (
            (),
            (voter(1, 50_000), voter(2, 40_000)),
            [True, True],
            ["3 of 3 answer", "leader 1, epoch 7, 2 voters"],
        ),
        (
            (3, 1),
            (voter(4, 9), voter(1, 50_000), voter(2, 39_999), voter(3, None)),
            [False, False],
            [
                "1 of 3 answer; broker 1 is silent; broker 3 is silent",
                "leader 1, epoch 7, 4 voters; voter 4 is 50 s behind; voter 2 is 10 s behind;"
                " voter 3 has never caught up",
            ],
        ),
        ((), (voter(1, None),), [True, True], ["3 of 3 answer", "leader 1, epoch 7, 1 voter"]),
        ((), (voter(2, None),), [True, True], ["3 of 3 answer", "leader 1, epoch 7, 1 voter"]),
    ],
)
def test_health_names_brokers_and_voters(
    silent: tuple[int, ...],
    voters: tuple[ReplicaFacts, ...],
    ok: list[bool],
    details: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(health.QuorumAdmin, "describe", quorum_of(*voters))  # type: ignore[attr-defined]  # a module that it imports
    monkeypatch.setattr(health, "described", lambda connection, names: [])
    brokers: Any = Brokers(*silent)
    checks = checks_of(brokers, "a:1")
    assert [each.check for each in checks] == ["brokers", "quorum", "leaders", "replicas"]
    assert [each.ok for each in checks] == [*ok, True, True]
    assert [each.detail for each in checks[:2]] == details
    assert checks[3].detail == "0 partitions, 0 lack replicas in sync"


def test_health_names_five_partitions_and_a_quorum_that_refuses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused(_: object) -> QuorumFacts:
        raise QuorumRefused("describe", 6, None)

    def topic(leader: int, in_sync: list[int], count: int) -> list[DescribedPartition]:
        rest: Any = (None, None, [], None, None, None)
        return [
            DescribedPartition(number, leader, 0, [1, 2], in_sync, *rest) for number in range(count)
        ]

    class Topic:
        def __init__(self, name: str, partitions: list[DescribedPartition]) -> None:
            self.name, self.partitions = name, partitions

    topics = [Topic("a", topic(1, [1, 2], 2)), Topic("b", topic(-1, [2], 6))]
    monkeypatch.setattr(health.QuorumAdmin, "describe", refused)  # type: ignore[attr-defined]  # a module that it imports
    monkeypatch.setattr(health, "described", lambda connection, names: topics)
    brokers: Any = Brokers()
    _, quorum, leaders, replicas = checks_of(brokers, "a:1")
    assert (quorum.ok, quorum.detail) == (False, "describe: NOT_LEADER_OR_FOLLOWER")
    names = "b-0, b-1, b-2, b-3, b-4, ..."
    assert (leaders.ok, leaders.detail) == (False, f"8 partitions, 6 have no leader: {names}")
    assert replicas.detail == f"8 partitions, 6 lack replicas in sync: {names}"
