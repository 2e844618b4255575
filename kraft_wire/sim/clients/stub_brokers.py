"""Brokers that exist on paper only: they register, send heartbeats, and change ISRs they lead.

The controllers of a quorum take them for brokers, though they have no log and serve no clients. So
a small quorum runs registrations, fencing, elections and reassignments. They know partitions from
the judge's twin, which equals a broker's metadata cache, and sometimes send outdated claims.
Sessions are judged: no broker is fenced before its session ends, and a broker that is silent for
long under one leader is fenced.
"""

from __future__ import annotations

from typing import Any, Final

from kraft_wire.model import Uuid
from kraft_wire.sim.clients.link import ClientLink
from kraft_wire.sim.judge.judge import Judge
from kraft_wire.sim.judge.violation import Violation
from kraft_wire.sim.machine_state import newest_leader
from kraft_wire.sim.scheduler import stream
from kraft_wire.sim.setup import BROKER_PORT, CLUSTER_ID, CONTROLLER_PORT
from kraft_wire.sim.stage import Stage
from kraft_wire.sim.traffic import Traffic
from kraft_wire.wire.generated.allocate_producer_ids import AllocateProducerIdsRequest
from kraft_wire.wire.generated.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    PartitionData,
    TopicData,
)
from kraft_wire.wire.generated.broker_heartbeat import BrokerHeartbeatRequest
from kraft_wire.wire.generated.broker_registration import (
    BrokerRegistrationRequest,
    Feature,
    Listener,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.message import Message

__all__ = ["FIRST_STUB_BROKER", "StubBroker"]

FIRST_STUB_BROKER: Final = 31
_PLACE: Final = -1_100
_TIMEOUT_US: Final = 1_000_000
_FEATURES: Final = (
    ("metadata.version", 7, 30),
    ("kraft.version", 0, 1),
    ("transaction.version", 0, 2),
)
_SESSION_MS: Final = 1_500
"""`broker.session.timeout.ms` of a quorum with brokers on paper."""


class StubBroker:
    """One broker without a process; `think_us` is the interval of its requests."""

    session_ms = _SESSION_MS

    def __init__(self, stage: Stage, traffic: Traffic, judge: Judge, node_id: int) -> None:
        self.stage = stage
        self.judge = judge
        self.id = node_id
        self.epoch = -1
        self.is_done = False
        self._link = ClientLink(stage, traffic, _PLACE - node_id)
        self._random = stream(stage.seed, "paper broker", node_id)
        self._incarnation = 0
        self._hint: int | None = None
        self._silent_until_us = 0
        self._is_leaving = False
        self._claims_stale = False
        """Whether its last change of an ISR named an epoch that is over."""
        self._heard: tuple[int, int, int] | None = None
        """Node and epoch that took a heartbeat last, and when that was sent."""
        self._asked_to_be_fenced = self._asked_to_stop = -1
        """The newest broker epoch under which it did: such a request may arrive at any time."""

    def start(self) -> None:
        """Begin after a while."""
        self._later()

    def _later(self) -> None:
        delay_us = self._random.randrange(100_000, self.session_ms * 250)
        self.stage.scheduler.after(delay_us, self._go_on)

    def _go_on(self) -> None:
        if self.is_done or self._link.is_busy:
            return
        now_us = self.stage.now_us
        if now_us < self._silent_until_us:
            self._must_be_fenced()
            if self.epoch < 0 or self._random.random() < 0.5:
                self._later()
            else:
                self._ask(self._heartbeat_of_another_life())
            return
        draw = self._random.random()
        if draw < 0.03:
            self._silent_until_us = now_us + self._random.randrange(6_000_000)
        elif draw < 0.05:
            self.epoch, self._is_leaving = -1, False
        elif draw < 0.06:
            self._is_leaving = True
        self._ask(self._request())

    def _request(self) -> Message:
        if self.epoch < 0:
            self._incarnation += 1
            return self._registration()
        kind = self._random.choice(("heartbeat", "heartbeat", "isr", "ids"))
        if kind == "ids":
            former = self.epoch - (self._random.random() < 0.2)
            return AllocateProducerIdsRequest(broker_id=self.id, broker_epoch=former)
        change = self._isr_change() if kind == "isr" else None
        return change if change is not None else self._heartbeat()

    def _registration(self) -> BrokerRegistrationRequest:
        listener = Listener(name="PLAINTEXT", host=f"paper{self.id}", port=BROKER_PORT)
        return BrokerRegistrationRequest(
            broker_id=self.id,
            cluster_id=CLUSTER_ID,
            incarnation_id=Uuid(bytes([self.id, self._incarnation % 256]) + b"incarnation.__"),
            listeners=[listener],
            features=[
                Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, low, high in _FEATURES
            ],
            log_dirs=[Uuid(bytes([self.id]) + b"directory of it")],
        )

    def _heartbeat(self) -> BrokerHeartbeatRequest:
        wants_fence = self._random.random() < 0.01
        if wants_fence:
            self._asked_to_be_fenced = self.epoch
        if self._is_leaving:
            self._asked_to_stop = self.epoch
        return BrokerHeartbeatRequest(
            broker_id=self.id,
            broker_epoch=self.epoch,
            current_metadata_offset=max(self.epoch, self.judge.ledger.committed_end - 1),
            want_fence=wants_fence,
            want_shut_down=self._is_leaving,
        )

    def _heartbeat_of_another_life(self) -> BrokerHeartbeatRequest:
        """Speak as an incarnation that was replaced: it must not keep this one's session."""
        return BrokerHeartbeatRequest(
            broker_id=self.id, broker_epoch=self.epoch - 1, current_metadata_offset=self.epoch
        )

    def _isr_change(self) -> AlterPartitionRequest | None:
        """Claim a new ISR of a partition that it leads, by its newest epochs or older ones."""
        twin = self.judge.twin
        led = [(key, of) for key, of in twin.of_kind("partition") if of["leader"] == self.id]
        if not led:
            return None
        key, partition = self._random.choice(led)
        others = [each for each in partition["replicas"] if self._random.random() < 0.7]
        isr = sorted({self.id, *others} if self._random.random() < 0.95 else {*others})
        stale, older = self._random.choice(((0, 0), (0, 0), (0, 0), (1, 0), (0, 1)))
        self._claims_stale = stale > 0 or older > 0
        data = PartitionData(
            partition_index=key[2],
            leader_epoch=partition["leader_epoch"] - stale,
            new_isr_with_epochs=[
                BrokerState(broker_id=each, broker_epoch=self._epoch_of(each)) for each in isr
            ],
            partition_epoch=partition["partition_epoch"] - older,
        )
        topics = [TopicData(topic_id=Uuid(key[1]), partitions=[data])]
        former = self.epoch - (self._random.random() < 0.1)
        return AlterPartitionRequest(broker_id=self.id, broker_epoch=former, topics=topics)

    def _epoch_of(self, broker_id: int) -> int:
        known: dict[str, Any] | None = self.judge.twin.now.get(("broker", broker_id))
        return -1 if known is None else int(known["epoch"])

    # -- asking ----------------------------------------------------------------------------------

    def _ask(self, request: Message) -> None:
        leader = newest_leader(self.stage.machines.values())
        known = leader.id if leader is not None else None
        node_id = known if known is not None else self._random.choice(self.stage.setup.controllers)
        asked_us, epoch = self.stage.now_us, self.epoch

        def answered(response: Message | None) -> None:
            if epoch == self.epoch and response is not None:
                self._answered(request, response, node_id, asked_us)
            self._later()

        self._link.ask(node_id, CONTROLLER_PORT, request, _TIMEOUT_US, answered)

    def _answered(self, request: Message, response: Message, node_id: int, asked_us: int) -> None:
        error = getattr(response, "error_code", 0)
        if getattr(request, "broker_epoch", self.epoch) != self.epoch:
            if error in (0, ErrorCode.BROKER_ID_NOT_REGISTERED):
                facts = (self.id, "in epoch", self.epoch, request, "is answered", response)
                raise Violation("S48 SessionIsKept", node_id, *facts)
            return
        if isinstance(request, BrokerRegistrationRequest) and not error:
            self.epoch = int(getattr(response, "broker_epoch", -1))
            self._is_leaving = False
        elif isinstance(request, BrokerHeartbeatRequest) and not error:
            machine = self.stage.machines[node_id]
            if machine.node is not None:
                self._heard = (node_id, machine.quorum.epoch, asked_us)
            self._judge_shutdown(request, response, node_id)
        elif isinstance(response, AlterPartitionResponse) and not error:
            errors = [each.error_code for topic in response.topics for each in topic.partitions]
            if self._claims_stale and errors and not errors[0]:
                raise Violation("S47 AnswerIsRight", node_id, request, "is answered", response)
        elif error in _GONE:
            self.epoch = -1

    def _judge_shutdown(self, request: Message, response: Message, node_id: int) -> None:
        """Check that a stopping broker is recorded as such, and may stop once it leads nothing.

        The record is committed when the answer leaves (KIP-841); the restarted broker registers.
        """
        if not getattr(request, "want_shut_down", False):
            return
        twin = self.judge.twin
        known = twin.now.get(("broker", self.id))
        if known is None or known["epoch"] != self.epoch:
            return
        led = [key for key, of in twin.of_kind("partition") if of["leader"] == self.id]
        may_stop = bool(getattr(response, "should_shut_down", False))
        if not (known["leaving"] or known["fenced"]) or (may_stop and led):
            facts = (self.id, "wants to stop", known, "leads", led, response)
            raise Violation("S49 ShutdownIsControlled", node_id, *facts)
        if may_stop:
            self.epoch = -1

    # -- judging ---------------------------------------------------------------------------------

    def fenced(self, epoch: int, broker_epoch: int, *, led: bool) -> None:
        """A leader of an epoch fenced it: not before its session ended.

        A broker that asks to stop is fenced at once only if it leads no partition; else others
        lead first, while it is recorded as about to stop (KIP-841).
        Only where that leader's clock and process were left alone since the last heartbeat.
        """
        if self._heard is None or broker_epoch != self.epoch:
            return
        if self._asked_to_be_fenced == self.epoch:
            return
        if self._asked_to_stop == self.epoch and not led:
            return
        node_id, heard_epoch, sent_us = self._heard
        machine = self.stage.machines[node_id]
        if heard_epoch != epoch or machine.disturbed_us >= sent_us:
            return
        passed_us = (self.stage.now_us - sent_us) * machine.clock.rate_permille // 1_000
        if passed_us < self.session_ms * 1_000:
            facts = (self.id, "is fenced", passed_us, "us after a heartbeat", self._heard)
            raise Violation("S48 SessionIsKept", node_id, *facts)

    def _must_be_fenced(self) -> None:
        """Check that a leader that commits has fenced the broker after a long silence."""
        leader = newest_leader(self.stage.machines.values())
        if leader is None or leader.node is None or self._heard is None:
            return
        _, _, sent_us = self._heard
        quorum, now_us = leader.quorum, self.stage.now_us
        has_room = leader.fs.fault is None and leader.fs.capacity_bytes is None
        is_active = leader.node.quorum.host.is_active and has_room and not leader.is_paused
        has_committed_all = quorum.high_watermark == quorum.log.log_end_offset
        since_us = max(sent_us + _TIMEOUT_US, leader.disturbed_us, leader.leads_since_us)
        passed_us = (now_us - since_us) * min(1_000, leader.clock.rate_permille) // 1_000
        known = self.judge.twin.now.get(("broker", self.id))
        is_unfenced = known is not None and known["epoch"] == self.epoch and not known["fenced"]
        if is_active and has_committed_all and is_unfenced and passed_us > _FENCED_WITHIN_US:
            raise Violation("S48 SessionIsKept", leader.id, self.id, "is silent for", passed_us)


_FENCED_WITHIN_US: Final = 2 * _SESSION_MS * 1_000 + 1_000_000
"""A leader with a full disk tries again after a second."""
_GONE: Final = (ErrorCode.STALE_BROKER_EPOCH, ErrorCode.BROKER_ID_NOT_REGISTERED)
"""After these the broker registers again."""
