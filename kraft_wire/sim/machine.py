"""One machine of the simulated cluster: a disk, clocks, and the process that hosts a `Node`.

It does what `server` does on real sockets: cuts bytes into frames, keeps at most one request of a
connection with the node, carries out the node's outputs in order, wakes it at its deadline, and
runs flushes beside it. In addition it may die: at a change of the disk, between two outputs, by a
kill (written data stays) or by loss of power (unsynced data stays in part, or not).

Not here: the faults themselves (`faults`), and the checks afterwards (`judge`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kraft_wire.model import FsyncFailed, StorageError, TopicPartition
from kraft_wire.node.disks.opening import StartError
from kraft_wire.node.node import Node
from kraft_wire.node.outputs import (
    Close,
    Connect,
    Disconnect,
    FlushLogs,
    LimitsChanged,
    Mute,
    NoReply,
    Output,
    Reply,
    SendBytes,
    ServeClients,
    StopProcess,
)
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.sim.judge.violation import Violation
from kraft_wire.sim.machine_state import MachineState
from kraft_wire.sim.observer import Observer
from kraft_wire.sim.repairs import cut_damage, directory_of
from kraft_wire.sim.scheduler import SeededRandomSource, stream
from kraft_wire.sim.setup import METADATA_DIRECTORY, format_disk
from kraft_wire.sim.stage import Stage
from kraft_wire.sim.traffic import Traffic
from kraft_wire.sim.wires import Wires
from kraft_wire.storage.directory.log_directory import METADATA_PARTITION

__all__ = ["Machine", "NodeBroke", "ProcessDied", "SpinningNode"]

_TICKS_PER_MS_MAX = 40
_REPAIRS_MAX = 3
_OPERATOR_US = 1_000_000
"""How long a log stays refused until an operator has read of it."""


class ProcessDied(BaseException):
    """Raised out of a file operation at which the process dies; nothing may catch it."""


class NodeBroke(Exception):
    """An exception of the node's own, or a start that it could not make."""

    invariant = "S28 CrashDontLimp"


class SpinningNode(Exception):
    """A node that requests an immediate wake-up, repeatedly."""

    invariant = "S24 NoBusyLoop"


class Machine(MachineState):
    """A node's machine."""

    def __init__(self, stage: Stage, observer: Observer, traffic: Traffic, node_id: int) -> None:
        super().__init__(stage.scheduler, stage.setup, node_id)
        self.stage = stage
        self.observer = observer
        self.outputs_until_death: int | None = None
        self._death_loses_power = False
        self.down_us = 100_000
        """How long it stays down after its next death."""
        self.restarts_by_itself = True
        self._held: list[tuple[Callable[..., None], tuple[Any, ...]]] = []
        self._wake_us: int | None = None
        self._ticks = (0, 0)
        self._format()
        self.wires = Wires(self, stage, observer, traffic, self.turn)
        stage.addresses.listen(self, self.wires)

    def _format(self) -> None:
        format_disk(self.fs, self.setup, self.id, self.generation, self.wall_ms)

    # -- life and death --------------------------------------------------------------------------

    def start(self) -> None:
        """Start a process; an operator repairs refused logs where that is allowed."""
        assert self.node is None, self.id
        self.life += 1
        self.is_stopping = False
        random_source = stream(self.stage.seed, "clock", self.id, self.life)
        self.clock.restart(self.stage.now_us, random_source.randrange(1_000_000))
        for _ in range(_REPAIRS_MAX):
            try:
                self._open()
            except StartError as refusal:
                self.observer.refused_start(self, str(refusal))
                self._repair(str(refusal))
                continue
            except ProcessDied:
                self._die_of_armed_fault()
            except (StorageError, FsyncFailed) as error:
                self._failed(error)
            except Violation:
                raise
            except Exception as error:
                raise NodeBroke(f"node {self.id} at its start: {error!r}") from error
            return
        raise NodeBroke(f"node {self.id} refuses to start after repairs")

    def _open(self) -> None:
        """Open the node, and carry out its first effects."""
        self.random_source = SeededRandomSource(self.stage.seed, "chance", self.id, self.life)
        self.random_source.leaning = self.leaning
        node = Node(
            self.stage.addresses.config_of(self.id),
            self.fs,
            self.random_source,
            now_ms=self.now_ms,
            wall_ms=self.wall_ms,
            report=self._report,
        )
        self.node = node
        self.observer.started(self)
        self._carry_out(node)
        self._arm(node)

    def _report(self, name: str, **fields: object) -> None:
        self.observer.reported(self, name, fields)
        if name == "log_refused":
            arguments = (self.life, fields["file"], fields["partition"])
            self.stage.scheduler.after(_OPERATOR_US, self._repair_replica, *arguments)

    def _repair(self, refusal: str) -> None:
        """Cut damage at the tail of the metadata log."""
        directory = METADATA_DIRECTORY.rpartition("/")[0]
        if not cut_damage(self.fs, directory, METADATA_PARTITION):
            raise NodeBroke(f"node {self.id} refuses to start: {refusal}")

    def _repair_replica(self, life: int, path: str, partition: TopicPartition) -> None:
        """Stop the process that refuses a replica's log, and cut it before the next start.

        A process that died meanwhile refuses the log again at its start.
        """
        if self.node is None or life != self.life:
            return
        self.observer.repairs(self, partition)
        self._died(loses_power=False)
        cut_damage(self.fs, directory_of(path), partition)

    def kill(self) -> None:
        """End the process; its written data stays."""
        if self.node is not None:
            self._died(loses_power=False)

    def lose_power(self) -> None:
        """Power off the machine; unsynced data is kept in part, or not at all."""
        if self.node is not None:
            self._died(loses_power=True)

    def arm_death(self, at: str, count: int, *, loses_power: bool) -> None:
        """Let the process die at the next "change" of the disk, or "output", after `count` more."""
        self._death_loses_power = loses_power
        if at == "output":
            self.outputs_until_death = count
            return
        left = count

        def before_change() -> None:
            nonlocal left
            left -= 1
            if left < 0:
                raise ProcessDied

        self.fs.before_change = before_change

    def disarm(self) -> None:
        """Take armed deaths back."""
        self.outputs_until_death = None
        self.fs.before_change = None

    def _die_of_armed_fault(self) -> None:
        self.observer.note(self, "dies in the middle")
        self._died(loses_power=self._death_loses_power)

    def _failed(self, error: StorageError | FsyncFailed) -> None:
        """Stop the process, as it does for an error of the metadata's disk.

        After a failed fsync the kernel returns bytes that are not on the disk and marks them clean:
        sometimes the machine stops with the process, sometimes the next process runs on that
        kernel.
        """
        self.observer.note(self, f"stops: {error}")
        loses_power = False
        if isinstance(error, FsyncFailed):
            draw = stream(self.stage.seed, "fsync", self.id, self.life)
            loses_power = draw.random() < 0.5
            share = draw.choice((0.0, 1.0) if self.disk.ordered else (0.0, 0.5, 1.0))
            self.fs.reached = lambda number: draw.random() < share
        self._died(loses_power=loses_power)

    def _died(self, *, loses_power: bool) -> None:
        self.observer.about_to_die(self)
        loses_power = loses_power and self.may_lose_power
        self.disarm()
        self.node = None
        self.is_paused = False
        self.serves_clients = not self.is_broker_only
        self._wake_us = None
        self._held = []
        self.wires.drop_all(is_silent=loses_power)
        self.fs = self._after_loss() if loses_power else self._after_kill()
        self.observer.stopped(self)
        if self.restarts_by_itself:
            self.stage.scheduler.after(self.down_us, self.start_if_down)

    def start_if_down(self) -> None:
        """Start the process, unless it runs already."""
        if self.node is None:
            self.start()

    def _after_kill(self) -> SimFileSystem:
        """Return the same disk for another process: nothing that was written is lost."""
        self.fs.release_locks()
        self.fs.fault = None
        self.fs.capacity_bytes = None  # an operator frees space before the next start
        return self.fs

    def _after_loss(self) -> SimFileSystem:
        """Return the content of the disk after power is back."""
        self.losses += 1
        draw = stream(self.stage.seed, "loss", self.id, self.losses)
        atoms = self.fs.pending_atoms()
        if self.disk.ordered:
            survivors = {atom.number for atom in atoms[: draw.randrange(len(atoms) + 1)]}
            return self.fs.crashed(survivors)
        share = draw.choice((0.0, 0.5, 0.9))
        survivors = {atom.number for atom in atoms if draw.random() < share}
        nonsense = draw.choice((0.0, 0.0, 0.2))
        garbage = {a.number for a in atoms if a.is_data and draw.random() < nonsense}
        return SimFileSystem.from_image(self.fs.image(survivors, garbage))

    def wipe(self) -> None:
        """Lose the disk, and get an empty one with a new directory id."""
        if self.node is not None:
            self._died(loses_power=True)
        lost = self.directory_id
        self.generation += 1
        self.fs = SimFileSystem()
        self._format()
        self.observer.wiped(self, lost)

    def begin_stop(self) -> None:
        """Ask the process to end gracefully."""
        node = self.node
        if node is not None and not self.is_stopping:
            self.is_stopping = True
            self.turn("stop", node.begin_stop)

    # -- turns -----------------------------------------------------------------------------------

    def turn(
        self, name: str, call: Callable[..., None], *arguments: Any, gives_time: bool = True
    ) -> None:
        """Make one call to the node, carry out its effects, and have all of it judged.

        `gives_time`: whether the call takes both clocks after its arguments, monotonic, then wall.
        """
        stage, node = self.stage, self.node
        assert node is not None, self.id
        if self.is_paused:
            self._held.append((self._resumed, (name, call, arguments, gives_time)))
            return
        now_us = stage.scheduler.now_us
        self.is_between_outputs = False
        clocks = (self.clock.now_ms(now_us), self.clock.wall_ms(now_us))
        try:
            call(*arguments, *(clocks if gives_time else ()))
            self._carry_out(node)
        except ProcessDied:
            self._die_of_armed_fault()
        except (StorageError, FsyncFailed) as error:
            self._failed(error)
        except (Violation, NodeBroke):
            raise
        except Exception as error:
            raise NodeBroke(f"node {self.id} at {name}: {error!r}") from error
        if self.node is node:
            self._arm(node)
        self.observer.after_turn(self, name)

    def _resumed(
        self, name: str, call: Callable[..., None], arguments: tuple[Any, ...], gives_time: bool
    ) -> None:
        if self.node is not None:
            self.turn(name, call, *arguments, gives_time=gives_time)

    def pause(self) -> None:
        """Stop the process without ending it, as SIGSTOP does."""
        self.is_paused = self.node is not None

    def resume(self) -> None:
        """Let it continue, with all events that arrived meanwhile."""
        if not self.is_paused:
            return
        self.is_paused = False
        self.heard_us = self.disturbed_us = self.stage.now_us
        held, self._held = self._held, []
        for do, arguments in held:
            do(*arguments)
        if not self.is_paused:
            self.wake_anew()

    def wake_anew(self) -> None:
        """Check the node's deadline again, after a fault of the clock or the process."""
        if self.node is not None:
            self.heard_us = self.disturbed_us = self.stage.now_us
            self._wake_us = None
            self._arm(self.node)

    # -- time ------------------------------------------------------------------------------------

    def _arm(self, node: Node) -> None:
        """Have the node woken at its deadline."""
        at_us = max(self.clock.true_us(node.deadline_ms()), self.stage.now_us)
        if self._wake_us is None or at_us < self._wake_us:
            self._wake_us = at_us
            self.stage.scheduler.at(at_us + self.stage.late_us(), self._wake, self.life, at_us)

    def _wake(self, life: int, at_us: int) -> None:
        node = self.node
        if node is None or life != self.life or at_us != self._wake_us:
            return
        if self.is_paused:
            return  # `resume` arms again
        self._wake_us = None
        now_ms = self.now_ms
        if node.deadline_ms() > now_ms:
            self._arm(node)
            return
        before, count = self._ticks
        self._ticks = (now_ms, count + 1 if before == now_ms else 1)
        # The slower a clock, the more work and so the more snapshots come in one of its ms.
        if self._ticks[1] > _TICKS_PER_MS_MAX * 1_000 // min(self.clock.rate_permille, 1_000):
            raise SpinningNode(f"node {self.id} wants {self._ticks[1]} ticks at {now_ms} ms")
        self.turn("tick", node.tick)

    # -- outputs ---------------------------------------------------------------------------------

    def _carry_out(self, node: Node) -> None:
        self.is_between_outputs = True
        while node.outputs:
            outputs, node.outputs = node.outputs, []
            for output in outputs:
                if self.outputs_until_death is not None:
                    self.outputs_until_death -= 1
                    if self.outputs_until_death < 0:
                        raise ProcessDied
                self._do(node, output)
                if self.node is not node:
                    return

    def _do(self, node: Node, output: Output) -> None:
        wires = self.wires
        match output:
            case SendBytes():
                wires.send(output)
            case Reply():
                wires.reply(output)
            case FlushLogs():
                self.stage.scheduler.after(self.disk.flush_us, self._flush, self.life, output)
            case NoReply() | Mute():
                wires.fall_silent(output)
            case Connect():
                wires.connect(output)
            case Disconnect(link_id):
                wires.disconnect(link_id)
            case Close():
                wires.close(output)
            case LimitsChanged() | ServeClients():  # simulated clients are few
                self.serves_clients |= isinstance(output, ServeClients)
            case StopProcess():
                self._stop_process(node, output)

    def _stop_process(self, node: Node, output: StopProcess) -> None:
        if output.reason is not None:
            raise NodeBroke(f"node {self.id} stops itself: {output.reason}")
        node.stop(self.now_ms, self.wall_ms)
        self._died(loses_power=False)

    def _flush(self, life: int, order: FlushLogs) -> None:
        node = self.node
        if node is None or life != self.life:
            return
        if self.is_paused:
            self._held.append((self._flush, (life, order)))
            return
        try:
            failure = order.run()
        except ProcessDied:
            self._die_of_armed_fault()
            self.observer.after_turn(self, "flush")
            return
        except Exception as error:
            raise NodeBroke(f"node {self.id} at its flush: {error!r}") from error
        if failure is not None:
            self._failed(failure)
            return
        self.turn("flushed", node.flushed, order.flush_id)
