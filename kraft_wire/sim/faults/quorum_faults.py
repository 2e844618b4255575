"""Carries out the faults of a plan on a world, and takes them all back at the end.

A fault without a target (no leader, the node is down) does nothing and is not counted. Membership
is changed as an operator does it: by requests to the leader, in bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from kraft_wire.model import ReplicaKey
from kraft_wire.raft.roles import Candidate, Prospective
from kraft_wire.sim.clients.hostile_client import Foreigner, HostileClient
from kraft_wire.sim.disk.files import DiskFault, SimFileSystem
from kraft_wire.sim.faults.controller_faults import begin_transaction, upgrade_request
from kraft_wire.sim.faults.relocation import move, restart_outdated
from kraft_wire.sim.machine import Machine
from kraft_wire.sim.network import HOSTILE_CLIENTS, SimConnection
from kraft_wire.sim.plans.plan import Fault, Habits
from kraft_wire.sim.scheduler import Clock, stream
from kraft_wire.sim.setup import CLUSTER_ID, CONTROLLER_PORT, LISTENER, directory_id
from kraft_wire.sim.world import World
from kraft_wire.wire.frame import frame_prefix
from kraft_wire.wire.generated.add_raft_voter import AddRaftVoterRequest
from kraft_wire.wire.generated.add_raft_voter import Listener as AddListener
from kraft_wire.wire.generated.fetch import FetchRequest
from kraft_wire.wire.generated.remove_raft_voter import RemoveRaftVoterRequest
from kraft_wire.wire.generated.vote import VoteRequest
from kraft_wire.wire.header import parse_request_header
from kraft_wire.wire.message import Buffer, MalformedMessage, Message

__all__ = ["QuorumFaults", "add_request", "remove_request"]

_OPERATOR_TIMEOUT_US: Final = 3_000_000
_LOOKS_EVERY_US: Final = 1_000
_UPGRADE_AGAIN_US: Final = 300_000
_DOWN_AFTER_HEALING_US: Final = 100_000
_QUORUM_FEATURE: Final = "kraft.version"
_DOUBLE_DIRECTORY: Final = b"another director"
_CLUSTER_ID: Final = CLUSTER_ID.encode()
_NAME_CLUSTER: Final = (1, 52, 53, 54, 59)
"""Fetch, Vote, BeginQuorumEpoch, EndQuorumEpoch, FetchSnapshot: they name their cluster."""


class QuorumFaults:
    """The faults of one world."""

    def __init__(self, world: World, habits: Habits) -> None:
        self.world = world
        self.habits = habits
        self.is_over = False
        self.wiped: dict[int, bool] = {}
        self._random = stream(world.seed, "misfortune")
        self._wants_quorum_upgrade = False
        self._upgrade_after_us = 0
        self._hostile = 0
        self._doubles = 0
        """Vote requests that are still to be repeated by doubles of their candidates."""
        for at, machine in enumerate(world.machines.values()):
            machine.disk.flush_us = habits.flush_us
            machine.disk.ordered = habits.is_disk_ordered
            machine.leaning = habits.leaning
            if at < len(habits.clock_rates):
                machine.clock.rate_permille = habits.clock_rates[at]
        world.late_us_max = habits.late_us
        world.network.delays.least_us = habits.delay_least_us
        world.network.delays.most_us = habits.delay_most_us
        for client in world.clients:
            client.think_us = habits.think_us

    def schedule(self, faults: tuple[Fault, ...]) -> None:
        """Have them happen at their times."""
        self._wants_quorum_upgrade = any(_upgrades_quorum(fault) for fault in faults)
        for fault in faults:
            self.world.scheduler.at(fault.at_us, self._happen, fault)

    def _happen(self, fault: Fault) -> None:
        if self.is_over:
            return
        do: Callable[[Fault], bool] = getattr(self, "_" + fault.kind.replace("-", "_"))
        machine = self._target(fault.target, down=True)
        role = "nobody" if machine is None else self.world.judge.watches[machine.id].role_name
        if do(fault):
            self.world.faults[fault.kind] += 1
            self.world.marks[f"fault {fault.kind} at {role}"] += 1
            if self.world.trace.keeps:
                self._keep(fault, machine)

    def _keep(self, fault: Fault, machine: Machine | None) -> None:
        """Write a line of the story."""
        now_us = self.world.now_us
        self.world.trace.keep(
            "fault",
            now_us,
            name=fault.kind,
            node=0 if machine is None else machine.id,
            other=fault.other,
            amount=fault.amount,
            is_hard=fault.is_hard,
            until_us=now_us + fault.span_us,
        )

    def heal(self) -> None:
        """Take everything back: from here on the quorum must work."""
        self.is_over = True
        world = self.world
        world.traffic.odd_answers.end()
        world.network.heal_all()
        world.network.delays.slow.clear()
        world.network.delays.least_us, world.network.delays.most_us = 200, 1_500
        world.late_us_max = 0
        for machine in world.machines.values():
            machine.disarm()
            machine.fs.fault = machine.fs.capacity_bytes = None
            machine.disk.flush_us = 300
            machine.clock.change_rate(world.now_us, Clock.USUAL_PERMILLE)
            machine.leaning = machine.random_source.leaning = ""
            machine.down_us = min(machine.down_us, _DOWN_AFTER_HEALING_US)  # it may be stopping
            machine.resume()
            if machine.node is None:
                machine.start()
            else:
                machine.wake_anew()
        restart_outdated(world)

    # -- whom ------------------------------------------------------------------------------------

    def _target(self, name: str, *, down: bool = False) -> Machine | None:
        machines = list(self.world.machines.values()) if down else self.world.running()
        if name == "leader":
            return self.world.leader()
        if name == "voted":
            voter = self.world.judge.last_voter
            return next((machine for machine in machines if machine.id == voter), None)
        if name == "candidate":
            return next((m for m in self.world.running() if _campaigns(m)), None)
        if name in ("longest", "shortest"):
            pick = max if name == "longest" else min
            ends = self.world.judge.watches
            return pick(machines, key=lambda m: (ends[m.id].log.end_offset, -m.id), default=None)
        kind, colon, number = name.partition(":")
        if colon and kind == "any":
            return machines[int(number) % len(machines)] if machines else None
        return self.world.machines.get(int(name)) if name.isdecimal() else None

    def _sides(self, fault: Fault) -> tuple[list[int], list[int]] | None:
        """Return the two sides of a cut."""
        one = self._target(fault.target, down=True)
        ids = list(self.world.machines)
        if one is None or len(ids) < 2:
            return None
        if fault.other == "rest":
            return [one.id], [each for each in ids if each != one.id]
        if fault.other == "half":
            at = ids.index(one.id)
            turned = ids[at:] + ids[:at]
            return turned[: (len(ids) + 1) // 2], turned[(len(ids) + 1) // 2 :]
        other = self._target(fault.other, down=True)
        return None if other is None or other is one else ([one.id], [other.id])

    # -- machines --------------------------------------------------------------------------------

    def _crash(self, fault: Fault) -> bool:
        machine = self._target(fault.target)
        if machine is None:
            return False
        machine.down_us = fault.span_us
        if fault.other:
            machine.arm_death(fault.other, fault.amount, loses_power=fault.is_hard)
        elif fault.is_hard:
            machine.lose_power()
        else:
            machine.kill()
        return True

    def _stop(self, fault: Fault) -> bool:
        machine = self._target(fault.target)
        if machine is None or machine.is_stopping:
            return False
        machine.down_us = fault.span_us
        machine.begin_stop()
        return True

    def _pause(self, fault: Fault) -> bool:
        machine = self._target(fault.target)
        if machine is None or machine.is_paused:
            return False
        machine.pause()
        self.world.scheduler.after(fault.span_us, machine.resume)
        return True

    def _wipe(self, fault: Fault) -> bool:
        """Take one disk away, where a majority of untouched ones remains."""
        machine = self._target(fault.target, down=True)
        leader = self.world.leader()
        if machine is None or leader is None or self.world.judge.ledger.committed_end == 0:
            return False
        if self.world.addresses.moves:
            return False
        if fault.other == "again":
            if not self._have_all_voters_their_disks(leader):
                return False
        elif self.wiped or len(self.world.setup.voters) < 3:
            return False
        self.wiped[machine.id] = True
        machine.down_us = fault.span_us
        was_up = machine.is_up
        machine.wipe()
        if not was_up:
            self.world.scheduler.after(fault.span_us, machine.start_if_down)
        return True

    def _have_all_voters_their_disks(self, leader: Machine) -> bool:
        """Return whether a disk may be lost: three voters or more, a committed set, all intact.

        A majority of the set in force has every committed record then, and still without one.
        """
        voters, machines = leader.quorum.voters, self.world.machines
        offset = voters.latest_offset
        if offset is None or offset >= self.world.judge.ledger.committed_end:
            return False
        keys = [node.key for node in voters.latest.nodes.values()]
        return len(keys) >= 3 and all(
            machines[key.id].directory_id == key.directory_id for key in keys
        )

    def _slow_disk(self, fault: Fault) -> bool:
        machine = self._target(fault.target)
        if machine is None:
            return False
        machine.disk.flush_us = fault.amount
        self.world.scheduler.after(fault.span_us, self._usual_disk, machine)
        return True

    def _usual_disk(self, machine: Machine) -> None:
        machine.disk.flush_us = self.habits.flush_us

    def _disk_error(self, fault: Fault) -> bool:
        machine = self._target(fault.target)
        if machine is None:
            return False
        machine.down_us = 50_000
        machine.fs.fault = (machine.fs.calls_count + fault.amount, DiskFault[fault.other])
        return True

    def _disk_full(self, fault: Fault) -> bool:
        """Limit the free space of a disk for a while; a restart of the node frees space."""
        machine = self._target(fault.target)
        if machine is None:
            return False
        fs = machine.fs
        fs.capacity_bytes = fs.used_bytes() + fault.amount
        self.world.scheduler.after(fault.span_us, self._make_room, fs)
        return True

    def _make_room(self, fs: SimFileSystem) -> None:
        fs.capacity_bytes = None

    def _clock_rate(self, fault: Fault) -> bool:
        machine = self._target(fault.target)
        if machine is None:
            return False
        machine.clock.change_rate(self.world.now_us, fault.amount)
        machine.wake_anew()
        return True

    def _wall_jump(self, fault: Fault) -> bool:
        machine = self._target(fault.target)
        if machine is None:
            return False
        machine.clock.wall_skew_ms += fault.amount
        return True

    # -- network ---------------------------------------------------------------------------------

    def _cut(self, fault: Fault) -> bool:
        sides = self._sides(fault)
        if sides is None:
            return False
        self._cut_between(*sides, both=fault.is_hard)
        self.world.scheduler.after(fault.span_us, self._heal_between, *sides, fault.is_hard)
        return True

    def _cut_between(self, one: list[int], other: list[int], *, both: bool) -> None:
        for source in one:
            for target in other:
                self.world.network.cut(source, target)
                if both:
                    self.world.network.cut(target, source)

    def _heal_between(self, one: list[int], other: list[int], both: bool) -> None:
        if self.is_over:
            return
        for source in one:
            for target in other:
                self.world.network.heal(source, target)
                if both:
                    self.world.network.heal(target, source)

    def _flap(self, fault: Fault) -> bool:
        sides = self._sides(fault)
        if sides is None:
            return False
        span_us = max(1, fault.span_us // (2 * fault.amount))
        for turn in range(fault.amount):
            at_us = self.world.now_us + 2 * turn * span_us
            self.world.scheduler.at(at_us, self._flap_down, *sides)
            self.world.scheduler.at(at_us + span_us, self._heal_between, *sides, True)
        return True

    def _flap_down(self, one: list[int], other: list[int]) -> None:
        if not self.is_over:
            self._cut_between(one, other, both=True)

    def _slow(self, fault: Fault) -> bool:
        machine = self._target(fault.target, down=True)
        if machine is None:
            return False
        self.world.network.delays.slow[machine.id] = fault.amount
        self.world.scheduler.after(fault.span_us, self._usual_speed, machine.id)
        return True

    def _usual_speed(self, node_id: int) -> None:
        self.world.network.delays.slow.pop(node_id, None)

    def _odd_answers(self, fault: Fault) -> bool:
        machine = self._target(fault.target)
        if machine is not None:
            until_us = self.world.now_us + fault.span_us
            self.world.traffic.odd_answers.begin(machine.id, until_us)
        return machine is not None

    def _reset(self, fault: Fault) -> bool:
        machine = self._target(fault.target)
        connections = list(self.world.network.connections.values())
        mine = [
            c
            for c in connections
            if machine is not None and machine.wires in (c.dialling, c.accepting)
        ]
        if not mine:
            return False
        self.world.network.reset(mine[fault.amount % len(mine)])
        return True

    def _replay(self, fault: Fault) -> bool:
        """Deliver an old request again, on a new connection."""
        return self._send_hostile(fault, is_garbled=False)

    def _garble(self, fault: Fault) -> bool:
        """Deliver an old request with some of its bits turned."""
        return self._send_hostile(fault, is_garbled=True)

    def _send_hostile(self, fault: Fault, *, is_garbled: bool) -> bool:
        machine = self._target(fault.target)
        if machine is None:
            return False
        port = self._port_of(machine)
        kept = [each for to, each in self.world.traffic.kept_requests if to == port]
        if is_garbled:
            kept = [each for each in kept if self._may_be_garbled(each)]
        if not kept:
            return False
        data = bytearray(kept[fault.amount % len(kept)])
        if not is_garbled and not self._may_be_replayed(data):
            return False
        if is_garbled:
            self.world.is_garbled = True
            draw = stream(self.world.seed, "garble", fault.at_us)
            for _ in range(draw.randrange(1, 4)):
                data[draw.randrange(4, len(data))] ^= 1 << draw.randrange(8)
            if self._lies(bytes(data[4:])):
                return False
        self._hostile += 1
        HostileClient(self.world.network, HOSTILE_CLIENTS - self._hostile, bytes(data)).dial(
            machine.host, port
        )
        return True

    def _foreign(self, fault: Fault) -> bool:
        """Send a request of the quorum that names another cluster."""
        machine = self._target(fault.target)
        kept = [
            data[4:]
            for port, data in self.world.traffic.kept_requests
            if port == CONTROLLER_PORT
            and int.from_bytes(data[4:6], "big") in _NAME_CLUSTER
            and _CLUSTER_ID in data
        ]
        if machine is None or not kept:
            return False
        frame = kept[fault.amount % len(kept)].replace(_CLUSTER_ID, _CLUSTER_ID[::-1])
        api_key, version = (int.from_bytes(frame[at : at + 2], "big") for at in (0, 2))
        self._hostile += 1
        place = HOSTILE_CLIENTS - self._hostile
        Foreigner(self.world.network, place, frame, api_key, version).dial(machine.host)
        return True

    def _lies(self, frame: bytes) -> bool:
        """Whether a request claims records that the voter's log does not hold.

        A leader must trust the fetch offset of a voter: no Raft tolerates a voter that lies.
        """
        try:
            header, at = parse_request_header(frame)
            if header.api_key != FetchRequest.API_KEY:
                return False
            request, _ = FetchRequest.decode(frame, header.api_version, at)
        except MalformedMessage:
            return False
        state = request.replica_state
        watch = self.world.judge.watches.get(state.replica_id if state else request.replica_id)
        ends = [each.fetch_offset for topic in request.topics for each in topic.partitions]
        return watch is not None and max(ends, default=0) > watch.log.durable_end

    def _double(self, fault: Fault) -> bool:
        """Repeat the next vote request that arrives anywhere, from a double of its candidate."""
        self._doubles += 1
        self.world.traffic.vote_request_arrived = self._send_double
        return True

    def _send_double(self, connection: SimConnection, frame: bytes, request: VoteRequest) -> None:
        """Ask for the same vote again: the candidate's id, another directory.

        A double's own request is not repeated: at a node that pauses, they would be hundreds.
        """
        asked = request.topics[0].partitions[0] if request.topics else None
        if self._doubles == 0 or self.is_over or asked is None or asked.pre_vote:
            return
        if connection.dialling.place <= HOSTILE_CLIENTS:
            return
        self._doubles -= 1
        self._hostile += 1
        data = frame.replace(asked.replica_directory_id, _DOUBLE_DIRECTORY, 1)
        stranger = HostileClient(
            self.world.network, HOSTILE_CLIENTS - self._hostile, frame_prefix(len(data)) + data
        )
        stranger.dial(self.world.machines[connection.accepting.place].host, connection.port)

    def _may_be_garbled(self, data: bytes) -> bool:
        """Whether a request may be sent with bits turned."""
        return True

    def _may_be_replayed(self, data: Buffer) -> bool:
        """Whether a request may be delivered after later ones."""
        return True

    def _port_of(self, machine: Machine) -> int:
        """Where old requests are sent to a machine."""
        return CONTROLLER_PORT

    # -- metadata ----------------------------------------------------------------------------------

    def _move(self, fault: Fault) -> bool:
        """Restart a controller on another host, unless a disk is lost in this run."""
        moved_id = self.world.addresses.moved_id
        machine = self._target(fault.target if moved_id is None else str(moved_id), down=True)
        if machine is None or self.wiped:
            return False
        machine.down_us = fault.span_us
        return move(self.world, machine)

    def _transaction(self, fault: Fault) -> bool:
        """Have the active controller write a metadata transaction, whole or in part."""
        leader = self.world.leader()
        if leader is None:
            return False
        return begin_transaction(self.world, leader, fault, lambda: self.is_over)

    def _upgrade(self, fault: Fault) -> bool:
        """Ask the leader for a level of a feature, as an operator does."""
        leader = self.world.leader()
        if leader is None or self.world.operator.is_busy:
            return False
        self._ask_operator(leader, upgrade_request(fault.other, fault.amount))
        return True

    def is_quorum_upgraded(self) -> bool:
        """Request kraft.version 1 again if it was requested; return whether it is in force."""
        world, leader = self.world, self.world.leader()
        if not self._wants_quorum_upgrade:
            return True
        if leader is None or leader.quorum.voters.kraft_version > 0:
            return leader is not None
        if not world.operator.is_busy and world.now_us > self._upgrade_after_us:
            self._upgrade_after_us = world.now_us + _UPGRADE_AGAIN_US
            self._ask_operator(leader, upgrade_request(_QUORUM_FEATURE, 1))
        return False

    # -- membership ------------------------------------------------------------------------------

    def _add_voter(self, fault: Fault) -> bool:
        leader = self.world.leader()
        if leader is None or self.world.operator.is_busy:
            return False
        members = leader.quorum.voters.latest.nodes
        outside = [
            m for m in self.world.machines.values() if m.id not in members and not m.is_broker_only
        ]
        if not outside:
            return False
        self._ask_operator(leader, add_request(outside[fault.amount % len(outside)]))
        return True

    def _remove_voter(self, fault: Fault) -> bool:
        leader = self.world.leader()
        if leader is None or self.world.operator.is_busy:
            return False
        keys = [node.key for node in leader.quorum.voters.latest.nodes.values()]
        if len(keys) < 2:
            return False
        key = keys[fault.amount % len(keys)]
        self._ask_operator(leader, remove_request(key))
        return True

    def _lose_leader(self, fault: Fault) -> bool:
        """Lose the leader once a voter lags behind the committed record that adds it.

        `other` is the kind of loss, `amount` its duration, `span_us` the longest wait.
        """
        self._lose_leader_until(fault, self.world.now_us + fault.span_us)
        return True

    def _lose_leader_until(self, fault: Fault, until_us: int) -> None:
        leader = self.world.leader()
        if self.is_over or self.world.now_us > until_us:
            return
        if leader is None or not self._has_unknowing_voter(leader):
            self.world.scheduler.after(_LOOKS_EVERY_US, self._lose_leader_until, fault, until_us)
            return
        how = replace(
            fault, kind=fault.other, target=str(leader.id), other="", span_us=fault.amount
        )
        if how.kind == "wipe":
            how = replace(how, other="again")
        self.world.marks["leader lost before a voter knew of its addition"] += 1
        self._happen(how)

    def _has_unknowing_voter(self, leader: Machine) -> bool:
        """Return whether a member of the leader's committed set takes itself for an observer."""
        voters = leader.quorum.voters
        offset = voters.latest_offset
        if offset is None or offset >= self.world.judge.ledger.committed_end:
            return False
        return any(
            voters.latest.is_voter(machine.quorum.config.key) and not machine.quorum.is_voter
            for machine in self.world.running()
        )

    def _ask_operator(self, leader: Machine, request: Message) -> None:
        world = self.world

        def answered(response: Message | None) -> None:
            error = getattr(response, "error_code", "none")
            world.marks[f"{request.NAME.removesuffix('Request')} {error}"] += 1

        world.operator.ask(leader.id, CONTROLLER_PORT, request, _OPERATOR_TIMEOUT_US, answered)


def _upgrades_quorum(fault: Fault) -> bool:
    return fault.kind == "upgrade" and fault.other == _QUORUM_FEATURE


def add_request(machine: Machine) -> AddRaftVoterRequest:
    """Return the request of kafka-metadata-quorum add-controller for a node."""
    listener = AddListener(name=LISTENER, host=machine.host, port=CONTROLLER_PORT)
    return AddRaftVoterRequest(
        cluster_id=CLUSTER_ID,
        voter_id=machine.id,
        voter_directory_id=directory_id(machine.id, machine.generation),
        listeners=[listener],
        timeout_ms=2_000,
    )


def remove_request(key: ReplicaKey) -> RemoveRaftVoterRequest:
    """Return the request of kafka-metadata-quorum remove-controller."""
    return RemoveRaftVoterRequest(
        cluster_id=CLUSTER_ID, voter_id=key.id, voter_directory_id=key.directory_id
    )


def _campaigns(machine: Machine) -> bool:
    return isinstance(machine.quorum.role, Candidate | Prospective)
