"""Plays a story: prose, commands, and under each command what happened.

A line `# …` is prose, `> …` a command; the lines behind a command are its record and are written
by `python -m tests.raft.scripts --rewrite`. Every story runs under the judge of all invariants.
Commands: `cluster voters=1,2,3 [observers=] [brokers=] [old=] [dynamic] [joins] [seed=]
[flush_ms=] [key=value]` with keys of RaftTiming, `run MS`, `until leader|settled`,
`append NODE COUNT`, `crash N`, `crash-after N EFFECTS`, `crash-installing N`, `crash-voting N`,
`restart N`, `wipe N`, `cut A,B C,D`, `oneway A B`, `heal`, `snapshot N`, `trim N`, `resign N`,
`stop N MS`, `add N`, `remove N`, `upgrade N LEVEL`, `state`, `log N`, `ignored N`, `progress N`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

from kraft_wire.model import ElectionState
from kraft_wire.raft import RaftTiming
from kraft_wire.raft.effects import (
    Effect,
    InstallSnapshot,
    LeadershipEstablished,
    PersistElectionState,
    ShutdownCompleted,
    TruncateLog,
    VersionUpgradeAnswered,
)
from kraft_wire.raft.events import ResignRequested, ShutdownRequested, VersionUpgradeRequested
from kraft_wire.raft.roles import Leader
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.message import Message
from tests.raft.cluster import Cluster, Host, Judge, Setup
from tests.raft.invariants import FetchTimeouts, Ledger, Patience
from tests.raft.memory import Batch
from tests.raft.swarm import add_request, remove_request

SCRIPTS = sorted(Path(__file__).parent.glob("*.txt"))
LINES_MAX = 40


class Teller(Judge):
    """Writes down what a reader wants to know."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.roles: dict[int, tuple[str, int]] = {}
        self.answered: dict[int, bool] = {}
        self.votes: dict[tuple[int, int], bool] = {}

    def after(self, host: Host) -> None:
        if host.replica is not None:
            quorum = host.replica.quorum
            now = (type(quorum.role).__name__, int(quorum.epoch))
            if self.roles.get(host.id) != now:
                self.roles[host.id] = now
                of = f" of {quorum.leader_id}" if now[0] == "Follower" else ""
                self.cluster.note(f"node {host.id} is {now[0]}{of} in epoch {now[1]}")
        for ticket, answer in self.cluster.client_answers.items():
            if ticket not in self.answered:
                self.answered[ticket] = True
                self.cluster.note(f"client gets {named(answer)}")

    def _is_new_vote(self, host: Host, election: ElectionState) -> bool:
        vote = (host.id, int(election.leader_epoch))
        is_new = election.voted_id not in (-1, host.id) and vote not in self.votes
        if is_new:
            self.votes[vote] = True
        return is_new

    def effect(self, host: Host, effect: Effect) -> None:
        match effect:
            case TruncateLog(end_offset):
                self.cluster.note(f"node {host.id} truncates to {end_offset}")
            case InstallSnapshot(snapshot_id):
                at = f"{snapshot_id.offset} epoch {snapshot_id.epoch}"
                self.cluster.note(f"node {host.id} installs the snapshot at {at}")
            case LeadershipEstablished(epoch):
                self.cluster.note(f"node {host.id} may act as leader of epoch {epoch}")
            case PersistElectionState(election) if self._is_new_vote(host, election):
                at = f"{election.voted_id} in epoch {election.leader_epoch}"
                self.cluster.note(f"node {host.id} votes for {at}")
            case VersionUpgradeAnswered(_, error):
                self.cluster.note(f"the upgrade ends with {error.name}")
            case ShutdownCompleted():
                self.cluster.note(f"node {host.id} has stopped")
            case _:
                pass


def named(answer: Message) -> str:
    code = ErrorCode(answer.error_code).name  # type: ignore[attr-defined]  # all answers have one
    return f"{type(answer).__name__} {code}"


class Player:
    """One story's cluster."""

    def __init__(self) -> None:
        self.cluster = Cluster(0)

    def do(self, command: str) -> list[str]:
        """Carry a command out; the lines that it makes."""
        name, *words = command.split()
        verb: Callable[..., list[str] | None] = getattr(self, "do_" + name.replace("-", "_"))
        lines = verb(*words) or []
        told, self.cluster.notes = self.cluster.notes, []
        told += lines
        if len(told) > LINES_MAX:
            told = [*told[:LINES_MAX], f"        … {len(told) - LINES_MAX} lines more"]
        return told

    def do_cluster(self, *words: str) -> None:
        counts = dict(word.split("=") for word in words if "=" in word)
        timing = {f.name: int(counts[f.name]) for f in fields(RaftTiming) if f.name in counts}

        def ids(key: str) -> tuple[int, ...]:
            return tuple(int(one) for one in counts.get(key, "").split(",") if one)

        setup = Setup(
            ids("voters"),
            ids("observers"),
            "dynamic" in words,
            "joins" in words,
            ids("brokers"),
            ids("old"),
            timing=RaftTiming(**timing),
            flush_ms=int(counts.get("flush_ms", "0")),
        )
        self.cluster = Cluster(int(counts.get("seed", "1")), setup)
        judges = [Ledger(self.cluster), Patience(self.cluster), FetchTimeouts()]
        self.cluster.judges = [*judges, Teller(self.cluster)]
        self.cluster.start()

    def host(self, word: str) -> Host:
        return self.cluster.hosts[int(word)]

    def do_run(self, for_ms: str) -> None:
        self.cluster.run(int(for_ms))

    def do_until(self, what: str) -> list[str]:
        condition = {"leader": self.cluster.established, "settled": self.cluster.is_settled}[what]
        return [] if self.cluster.run_until(condition) else [f"        no {what} in a minute"]

    def do_append(self, node: str, count: str) -> list[str]:
        ticket = self.cluster.append(int(node), int(count))
        if ticket is None or ticket not in self.cluster.ticket_ends:
            return [f"        node {node} refuses"]
        return [f"        appended up to {self.cluster.ticket_ends[ticket][2]}"]

    def do_crash(self, node: str) -> None:
        self.host(node).crash()

    def do_crash_after(self, node: str, effects: str) -> None:
        self.host(node).effects_until_crash = int(effects)

    def do_crash_installing(self, node: str) -> None:
        self.host(node).dies_within_installation = True

    def do_crash_voting(self, node: str) -> None:
        self.host(node).dies_after_vote = True

    def do_restart(self, node: str) -> None:
        self.host(node).start()
        for judge in self.cluster.judges:
            judge.after(self.host(node))

    def do_wipe(self, node: str) -> None:
        self.host(node).wipe()

    def do_cut(self, one: str, other: str) -> None:
        self.cluster.cut(map(int, one.split(",")), map(int, other.split(",")))

    def do_oneway(self, one: str, other: str) -> None:
        self.cluster.cut(map(int, one.split(",")), map(int, other.split(",")), one_way=True)

    def do_heal(self) -> None:
        self.cluster.heal()

    def do_snapshot(self, node: str) -> list[str]:
        made = self.host(node).take_snapshot()
        told = "none" if made is None else f"at {made.offset} epoch {made.epoch}"
        return [f"        snapshot {told}"]

    def do_trim(self, node: str) -> list[str]:
        self.host(node).trim()
        return [f"        log starts at {self.host(node).disk.log.start.offset}"]

    def do_resign(self, node: str) -> None:
        epoch = self.host(node).quorum().quorum.epoch
        self.cluster.take(int(node), ResignRequested(epoch))

    def do_stop(self, node: str, timeout_ms: str) -> None:
        self.cluster.take(int(node), ShutdownRequested(int(timeout_ms)))

    def do_add(self, node: str) -> list[str]:
        leader = self.cluster.leader()
        assert leader is not None, "nobody leads"
        self.cluster.ask(leader.id, add_request(self.host(node)))
        return []

    def do_remove(self, node: str) -> list[str]:
        leader = self.cluster.leader()
        assert leader is not None, "nobody leads"
        host = self.host(node)
        nodes = leader.quorum().quorum.voters.latest.nodes
        known = [one.key for one in nodes.values() if one.key.id == host.id]
        key = known[0] if known else host.key
        self.cluster.ask(leader.id, remove_request(key.id, key.directory_id))
        return []

    def do_upgrade(self, node: str, level: str) -> None:
        epoch = self.host(node).quorum().quorum.epoch
        event = VersionUpgradeRequested("upgrade", int(level), epoch, validate_only=False)
        self.cluster.take(int(node), event)

    def do_state(self) -> list[str]:
        lines = []
        for host in self.cluster.hosts.values():
            if host.replica is None:
                lines.append(f"        {host.id} down, log ends at {host.disk.log.log_end_offset}")
                continue
            quorum = host.replica.quorum
            voters = ",".join(str(voter) for voter in quorum.voters.latest.nodes)
            log = host.disk.log
            lines.append(
                f"        {host.id} {type(quorum.role).__name__} epoch {quorum.epoch} "
                f"log {log.start.offset}..{log.log_end_offset} "
                f"high watermark {quorum.high_watermark} voters {voters}"
            )
        return lines

    def do_log(self, node: str) -> list[str]:
        return [f"        {described(batch)}" for batch in self.host(node).disk.log.batches]

    def do_ignored(self, node: str) -> list[str]:
        counts = self.host(node).quorum().quorum.ignored.counts()
        return [f"        {reason.value}" for reason in sorted(counts, key=lambda r: r.name)]

    def do_progress(self, node: str) -> list[str]:
        role = self.host(node).quorum().quorum.role
        assert isinstance(role, Leader), role
        return [f"        {k.id} at {p.end_offset}" for k, p in sorted(role.progress.items())]


def described(batch: Batch) -> str:
    content = [type(message).__name__ for message in batch.controls]
    content += [f"{len(batch.values)} records"] if batch.values else []
    return f"{batch.base_offset}..{batch.end_offset} epoch {batch.epoch} {', '.join(content)}"


def played(text: str) -> str:
    """The story with what happens now under each command."""
    player, lines = Player(), []
    for line in text.splitlines():
        if line.startswith("> "):
            lines.append(line)
            lines += player.do(line[2:])
        elif line.startswith("#") or not line:
            lines.append(line)
    return "\n".join(lines) + "\n"
