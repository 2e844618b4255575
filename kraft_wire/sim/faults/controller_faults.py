"""Other changes of the metadata: open transactions, and upgrades by an operator.

A metadata transaction (KIP-868) is written as a controller of Apache Kafka may write one: over
several batches, with nothing else in between, then ended, aborted, or left open by a controller
that resigns or dies. Its two settings are always written together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from kraft_wire.metadata.records import VersionedRecord, encode_record
from kraft_wire.node.quorum.raft_disk import PendingAppend
from kraft_wire.raft.events import ResignRequested
from kraft_wire.sim.clients.register_client import CLIENT_METRICS
from kraft_wire.sim.judge.upkeep_invariants import HALVES
from kraft_wire.sim.machine import Machine
from kraft_wire.sim.plans.plan import Fault
from kraft_wire.sim.world import World
from kraft_wire.wire.generated.abort_transaction_record import AbortTransactionRecord
from kraft_wire.wire.generated.begin_transaction_record import BeginTransactionRecord
from kraft_wire.wire.generated.config_record import ConfigRecord
from kraft_wire.wire.generated.end_transaction_record import EndTransactionRecord
from kraft_wire.wire.generated.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from kraft_wire.wire.message import Message

__all__ = ["begin_transaction", "upgrade_request"]

_INTERVAL: Final = "interval.ms"
_FIRST_VALUE: Final = 500_000
_PARTS: Final = 4
"""Batches of a transaction: one setting each, its beginning and its end."""
_UPGRADE: Final = 1
_SPAN_US_MAX: Final = 1_500_000
_TRANSACTIONS_FROM: Final = 13
"""metadata.version of 3.6-IV1, the first with transactions."""


def begin_transaction(
    world: World, machine: Machine, fault: Fault, is_over: Callable[[], bool]
) -> bool:
    """Let the active controller write a transaction, a batch at a time; False without one.

    `is_over` returns whether faults are over: then the controller resigns in any case.
    """
    node = machine.node
    if node is None or machine.is_paused or not node.quorum.host.is_active:
        return False
    if node.raft.committed.image.metadata_version < _TRANSACTIONS_FROM:
        return False
    if world.judge.ledger.is_inside_transaction(node.raft.log.log_end_offset):
        return False
    # A client's request from here on would become part of the transaction.
    node.quorum.host.is_active = False
    value = str(_FIRST_VALUE + fault.at_us % 100_000)
    last: Message = EndTransactionRecord()
    if fault.amount % 3 == 1:
        last = AbortTransactionRecord(reason="simulated")
    batches: list[list[Message]] = [
        [BeginTransactionRecord(name="simulated")],
        [_half(HALVES[0], value)],
        [_half(HALVES[1], value)],
        [last],
    ]
    if fault.amount % 2:  # markers share a batch with what they enclose
        batches = [[*batches[0], *batches[1]], [*batches[2], *batches[3]]]
    if fault.amount % 3 == 2:
        batches.pop()
    epoch = node.quorum.raft.replica.quorum.epoch
    pause_us = max(1, min(fault.span_us, _SPAN_US_MAX) // _PARTS)
    life, left = machine.life, iter(batches)

    def go_on() -> None:
        if _is_another(machine, life, epoch):
            return
        batch = None if is_over() else next(left, None)
        _append_or_resign(machine, batch)
        if batch is not None:
            world.scheduler.after(pause_us, go_on)

    go_on()
    return True


def _half(name: str, value: str) -> ConfigRecord:
    return ConfigRecord(
        resource_type=CLIENT_METRICS, resource_name=name, name=_INTERVAL, value=value
    )


def _is_another(machine: Machine, life: int, epoch: int) -> bool:
    """Return whether the process that began a transaction is gone, or in a later epoch."""
    return machine.node is None or machine.life != life or machine.quorum.epoch != epoch


def _append_or_resign(machine: Machine, batch: Sequence[Message] | None) -> None:
    node = machine.node
    assert node is not None, machine.id

    def act(now_ms: int, wall_ms: int) -> None:
        raft = node.raft
        epoch = raft.replica.quorum.epoch
        is_appended = False
        if batch is not None:
            values = tuple(encode_record(VersionedRecord(each)) for each in batch)
            write = PendingAppend(values, batch)
            raft.write(write, epoch, now_ms, wall_ms)
            is_appended = write.next_offset is not None  # else its disk is full
        if not is_appended:
            raft.take(ResignRequested(epoch), now_ms, wall_ms)
        node.tick(now_ms, wall_ms)

    machine.turn("transaction", act)


def upgrade_request(feature: str, level: int) -> UpdateFeaturesRequest:
    """Return the request of kafka-features upgrade."""
    update = FeatureUpdateKey(feature=feature, max_version_level=level, upgrade_type=_UPGRADE)
    return UpdateFeaturesRequest(timeout_ms=2_000, feature_updates=[update])
