"""From the directories of nodes to findings: reads the files that the checks are about.

`sources` lists directories, `metadata` reads the metadata log and its snapshots, `reading` the
files of a replica, `tasks` are a worker's pieces, `run` plans and distributes them, `told` reads a
user's inputs besides the directories.
"""

from kraft_wire.audit.collector.inputs import checks_of, read_high_watermarks, read_ledger_file
from kraft_wire.audit.collector.run import AuditPlan, AuditResult, plan_audit, run_audit
from kraft_wire.audit.collector.sources import CannotAudit, PartitionReplicas, list_sources
from kraft_wire.audit.collector.tasks import (
    Extent,
    PartitionTask,
    TaskResult,
    run_snapshots,
    run_tasks,
)

__all__ = [
    "AuditPlan",
    "AuditResult",
    "CannotAudit",
    "Extent",
    "PartitionReplicas",
    "PartitionTask",
    "TaskResult",
    "checks_of",
    "list_sources",
    "plan_audit",
    "read_high_watermarks",
    "read_ledger_file",
    "run_audit",
    "run_snapshots",
    "run_tasks",
]
