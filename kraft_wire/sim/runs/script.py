"""The commands of a story: prose, commands, and under each command what happened.

A line `# …` is prose, `> …` a command; the lines behind a command are its record. Every story runs
under all invariants, on whole nodes whose bytes travel over simulated wires. Commands:

    cluster voters=1,2,3 [observers=4] [dynamic] [joins] [seed=N] [KEY=VALUE]   (keys of `Setup`)
    run MS · until leader|settled
    crash N · kill N · restart N · wipe N · stop N · pause N · resume N
    crash-at-change N COUNT · crash-at-output N COUNT
    cut A,B C,D · oneway A B · heal · slow N US · rate N PERMILLE
    write N NAME VALUE · writes N COUNT · read N NAME · add N · remove N
    state · log N

N is a node's number, "leader" or "follower"; in a cut also "others", all but the leader.

Errors: `StoryError` for an unknown command.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from inspect import signature
from typing import Any, Final

from kraft_wire.model import NO_REPLICA
from kraft_wire.raft.roles import Role
from kraft_wire.sim.clients.register_client import CLIENT_METRICS
from kraft_wire.sim.faults.quorum_faults import add_request, remove_request
from kraft_wire.sim.judge.invariants import SAFETY
from kraft_wire.sim.judge.judge import Judge, NodeWatch, Signals
from kraft_wire.sim.judge.ledger import changes_of
from kraft_wire.sim.judge.log_watch import Election, SeenBatch, SeenSnapshot
from kraft_wire.sim.machine import Machine
from kraft_wire.sim.setup import CONTROLLER_PORT, Setup
from kraft_wire.sim.world import World
from kraft_wire.wire.generated.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraft_wire.wire.message import Message

__all__ = ["Player", "StoryError", "write_request"]

_FAR_MS: Final = 60_000
_LINES_MAX: Final = 60
_INTERVAL: Final = "interval.ms"
_NO_STORY: Final = ("brokers", "data")
"""Stories have quorums only."""
_FLAGS: Final = {"dynamic": "is_dynamic", "joins": "joins_by_itself"}


class StoryError(Exception):
    """A line that is not a command, or one that cannot be executed."""


class _Teller(Signals):
    """Records the events that a reader needs."""

    id, name = "", "Teller"
    lines: list[str]

    def tell(self, watch: NodeWatch, text: str) -> None:
        """Add a line with the time."""
        now_ms = self.judge.stage.now_us // 1_000
        self.lines.append(f"{now_ms:>7} node {watch.id} {text}")

    def role(self, watch: NodeWatch, before: Role | None, epoch_before: int) -> None:
        whose = f" of {watch.leader_id}" if watch.role_name == "Follower" else ""
        self.tell(watch, f"is {watch.role_name}{whose} in epoch {watch.epoch}")

    def election(self, watch: NodeWatch, before: Election | None, now: Election) -> None:
        voted = before.voted_id if before is not None and before.epoch == now.epoch else NO_REPLICA
        if now.voted_id not in (NO_REPLICA, voted, watch.id):
            self.tell(watch, f"votes for {now.voted_id} in epoch {now.epoch}")

    def cut(self, watch: NodeWatch, offset: int, is_reset: bool) -> None:
        what = "begins its log anew at" if is_reset else "truncates its log to"
        self.tell(watch, f"{what} {offset}")

    def snapshot(self, watch: NodeWatch, snapshot: SeenSnapshot) -> None:
        if snapshot.offset:
            self.tell(watch, f"has a snapshot up to {snapshot.offset}, epoch {snapshot.epoch}")


class Player:
    """Executes one command after the other; `prepare` gets the world before any node starts."""

    def __init__(
        self,
        kinds: Sequence[Callable[[Judge], Signals]] = SAFETY,
        prepare: Callable[[World], None] = lambda world: None,
        *,
        keeps_trace: bool = False,
    ) -> None:
        self.world: World | None = None
        self.lines: list[str] = []
        self._keeps_trace = keeps_trace
        self._kinds = kinds
        self._prepare = prepare

    def do(self, line: str) -> list[str]:
        """Execute a command, and return its record."""
        name, *words = line.split()
        command: Callable[..., list[str] | None] | None
        command = getattr(self, "_do_" + name.replace("-", "_"), None)
        if command is None:
            raise StoryError(f"unknown command: {name}")
        self.lines.clear()
        try:
            said = command(*words) or []
        except KeyError as error:
            raise StoryError(f"{line!r}: there is no {error}") from error
        except TypeError as error:
            takes = " ".join(signature(command).parameters)
            raise StoryError(f"{line!r}: what it takes is {name} {takes}") from error
        except ValueError as error:
            raise StoryError(f"{line!r}: {error}") from error
        told = [*self.lines, *said]
        if len(told) > _LINES_MAX:
            told = [*told[:_LINES_MAX], f"        … {len(told) - _LINES_MAX} lines more"]
        return told

    @property
    def _there(self) -> World:
        if self.world is None:
            raise StoryError("the first command is `cluster`")
        return self.world

    def _machine(self, name: str) -> Machine:
        """Return a node by its number, or "leader", or "follower": the first one that runs."""
        if name == "leader":
            return self._leader()
        if name == "follower":
            leader = self._leader()
            return next(machine for machine in self._there.running() if machine is not leader)
        return self._there.machines[int(name)]

    def _ids(self, names: str) -> list[int]:
        """Return the numbers of several nodes; "others" are all but the leader."""
        if names == "others":
            return [each for each in self._there.machines if each != self._leader().id]
        return [self._machine(name).id for name in names.split(",")]

    # -- time ------------------------------------------------------------------------------------

    def _do_cluster(self, *words: str) -> None:
        types = {field.name: field.type for field in fields(Setup) if field.name not in _NO_STORY}
        values: dict[str, Any] = {"clients": 0, "idle_interval_ms": 0}
        seed = 1
        for word in words:
            key, equals, value = word.partition("=")
            if key == "seed":
                seed = int(value)
            elif not equals:
                values[_FLAGS[key]] = True
            elif types[key] == "tuple[int, ...]":
                values[key] = tuple(map(int, value.split(",")))
            else:
                values[key] = int(value)
        kinds = (*self._kinds, self._teller)
        self.world = World(seed, Setup(**values), kinds=kinds, keeps_trace=self._keeps_trace)
        for machine in self.world.machines.values():
            machine.restarts_by_itself = False
        self._prepare(self.world)
        self.world.start()

    def _teller(self, judge: Judge) -> Signals:
        teller = _Teller(judge)
        teller.lines = self.lines
        return teller

    def _run_until(self, condition: Callable[[], bool], within_ms: int) -> bool:
        world = self._there
        end_us = world.now_us + within_ms * 1_000
        while not condition():
            at_us = world.scheduler.next_us()
            if at_us is None or at_us > end_us:
                world.scheduler.now_us = max(world.now_us, end_us)
                return False
            world.scheduler.step()
        return True

    def _do_run(self, span_ms: str) -> None:
        self._run_until(lambda: False, int(span_ms))

    def _do_until(self, what: str) -> list[str]:
        world = self._there
        conditions = {"leader": lambda: world.leader() is not None, "settled": world.is_settled}
        reached = self._run_until(conditions[what], _FAR_MS)
        return [] if reached else [f"        never {what}"]

    # -- faults ----------------------------------------------------------------------------------

    def _do_crash(self, node: str) -> None:
        self._machine(node).lose_power()

    def _do_kill(self, node: str) -> None:
        self._machine(node).kill()

    def _do_restart(self, node: str) -> None:
        self._machine(node).start_if_down()

    def _do_wipe(self, node: str) -> None:
        self._machine(node).wipe()

    def _do_stop(self, node: str) -> None:
        self._machine(node).begin_stop()

    def _do_pause(self, node: str) -> None:
        self._machine(node).pause()

    def _do_resume(self, node: str) -> None:
        self._machine(node).resume()

    def _do_crash_at_change(self, node: str, count: str) -> None:
        self._machine(node).arm_death("change", int(count), loses_power=True)

    def _do_crash_at_output(self, node: str, count: str) -> None:
        self._machine(node).arm_death("output", int(count), loses_power=True)

    def _do_cut(self, one: str, other: str) -> None:
        for source in self._ids(one):
            for target in self._ids(other):
                self._there.network.cut(source, target)
                self._there.network.cut(target, source)

    def _do_writes(self, node: str, count: str) -> None:
        """Write a register repeatedly, saying nothing."""
        node_id = self._machine(node).id
        for number in range(int(count)):
            self._ask(node_id, write_request("w", str(2_000 + number)))

    def _do_oneway(self, source: str, target: str) -> None:
        for one in self._ids(source):
            for other in self._ids(target):
                self._there.network.cut(one, other)

    def _do_heal(self) -> None:
        self._there.network.heal_all()

    def _do_slow(self, node: str, extra_us: str) -> None:
        self._there.network.delays.slow[self._machine(node).id] = int(extra_us)

    def _do_rate(self, node: str, permille: str) -> None:
        machine = self._machine(node)
        machine.clock.change_rate(self._there.now_us, int(permille))
        machine.wake_anew()

    # -- requests --------------------------------------------------------------------------------

    def _ask(self, node_id: int, request: Message) -> Message | None:
        answers: list[Message | None] = []
        self._there.operator.ask(node_id, CONTROLLER_PORT, request, 5_000_000, answers.append)
        self._run_until(lambda: bool(answers), _FAR_MS)
        return answers[0] if answers else None

    def _do_write(self, node: str, name: str, value: str) -> list[str]:
        response = self._ask(self._machine(node).id, write_request(name, value))
        found = getattr(response, "responses", None)
        return [f"        client gets {_error(found[0].error_code if found else None)}"]

    def _do_read(self, node: str, name: str) -> list[str]:
        resource = DescribeConfigsResource(
            resource_type=CLIENT_METRICS, resource_name=name, configuration_keys=[_INTERVAL]
        )
        response = self._ask(self._machine(node).id, DescribeConfigsRequest(resources=[resource]))
        found = getattr(response, "results", None)
        if not found:
            return ["        client gets no answer"]
        shown = [config.value for config in found[0].configs]
        return [f"        client reads {shown[0] if shown else 'nothing'}"]

    def _leader(self) -> Machine:
        leader = self._there.leader()
        if leader is None:
            raise StoryError("nobody leads")
        return leader

    def _do_add(self, node: str) -> list[str]:
        return self._changed(add_request(self._machine(node)))

    def _do_remove(self, node: str) -> list[str]:
        nodes = self._leader().quorum.voters.latest.nodes
        keys = [each.key for each in nodes.values() if each.key.id == self._machine(node).id]
        return self._changed(remove_request(keys[0]))

    def _changed(self, request: Message) -> list[str]:
        response = self._ask(self._leader().id, request)
        name = request.NAME.removesuffix("Request")
        return [f"        {name} gets {_error(getattr(response, 'error_code', None))}"]

    # -- looking ---------------------------------------------------------------------------------

    def _do_state(self) -> list[str]:
        lines = []
        for machine in self._there.machines.values():
            log = self._there.judge.watches[machine.id].log
            if machine.node is None:
                lines.append(f"        {machine.id} down, log ends at {log.end_offset}")
                continue
            quorum = machine.quorum
            voters = ",".join(str(voter) for voter in quorum.voters.latest.nodes)
            lines.append(
                f"        {machine.id} {type(quorum.role).__name__} epoch {quorum.epoch} "
                f"log {log.start_offset}..{log.end_offset} durable {log.durable_end} "
                f"high watermark {quorum.high_watermark} voters {voters}"
            )
        return lines

    def _do_log(self, node: str) -> list[str]:
        log = self._there.judge.watches[self._machine(node).id].log
        return [f"        {_described(batch)}" for batch in log.batches]


def write_request(name: str, value: str) -> IncrementalAlterConfigsRequest:
    """Return a request that sets one of the registers, a client-metrics configuration."""
    config = AlterableConfig(name=_INTERVAL, config_operation=0, value=value)
    resource = AlterConfigsResource(
        resource_type=CLIENT_METRICS, resource_name=name, configs=[config]
    )
    return IncrementalAlterConfigsRequest(resources=[resource])


def _error(code: int | None) -> str:
    return "no answer" if code is None else ErrorCode(code).name


def _described(batch: SeenBatch) -> str:
    content = [kind.name for _, kind, _ in batch.controls()]
    values = len(batch.values())
    content += [f"{values} records"] if values else []
    content += [f"{each.register[2]}={each.value}" for each in changes_of(batch)]
    return f"{batch.base_offset}..{batch.end_offset} epoch {batch.epoch} {', '.join(content)}"
