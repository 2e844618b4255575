"""Clients at work on a cluster under faults, and the verdict on their history."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.clients.cluster import REPLICAS, Cluster
from tests.clients.registry import Client
from tests.clients.transactions.running import NODE_SETTINGS, Ground
from tests.histories.checker import Anomaly, find_anomalies
from tests.histories.faults import FaultFinder
from tests.histories.workload import Workload

__all__ = ["SETTINGS", "Verdict", "judge_under_faults"]

SETTINGS = {
    **NODE_SETTINGS,
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
}


@dataclass
class Verdict:
    """What a campaign has shown."""

    faults: dict[str, int]
    transactions: dict[str, int]
    records: int
    anomalies: list[Anomaly]
    problems: list[str] = field(default_factory=list)

    @property
    def is_green(self) -> bool:
        """Whether the history has no anomaly, and is one."""
        committed = self.transactions.get("committed", 0)
        return committed > 0 and self.records > 0 and not self.anomalies and not self.problems


def judge_under_faults(
    cluster: Cluster, home: Path, clients: Sequence[Client], faults: int, seed: int
) -> Verdict:
    """Run the workload until all faults are over, and judge what was seen."""
    workload = Workload(Ground(cluster.bootstrap, home, REPLICAS), clients, seed)
    finder = FaultFinder(cluster, seed)
    workload.start()
    try:
        finder.have(faults)
    finally:
        history = workload.stop(clients[0])
    return Verdict(
        finder.had,
        dict(Counter(each.outcome.value for each in history.transactions)),
        len(history.final),
        find_anomalies(history),
        workload.problems,
    )
