"""Checks about logs, pure functions over batch tables: is anything damaged, lost, moved.

The checks read `replica` and yield `finding`. `layout` and `walk` locate the batches of a replica,
`comparison` finds where replicas differ; `replica_checks` and `replica_set_checks` are the checks
over them, and `partition_audit` runs all of them, so that each fault is reported once. These
modules read no files: `collector` does.
"""

from kraft_wire.audit.finding import CHECKS, Finding
from kraft_wire.audit.partition_audit import PartitionFacts, audit_partition
from kraft_wire.audit.replica import Batches, Replica, batches_of
from kraft_wire.audit.replica_checks import check_crc, check_epoch, check_gap, check_producer
from kraft_wire.audit.replica_set_checks import (
    check_below_high_watermark,
    check_divergence,
    check_log_matching,
)

__all__ = [
    "CHECKS",
    "Batches",
    "Finding",
    "PartitionFacts",
    "Replica",
    "audit_partition",
    "batches_of",
    "check_below_high_watermark",
    "check_crc",
    "check_divergence",
    "check_epoch",
    "check_gap",
    "check_log_matching",
    "check_producer",
]
