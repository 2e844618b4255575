"""What producers and consumers were told, held against what is read back and lies on the disks."""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from dataclasses import dataclass, field

from tests.mixed.chaos import error_lines
from tests.mixed.controller import KRAFT_WIRE, OURS
from tests.replicas.campaign import Campaign
from tests.replicas.cluster import TOPIC
from tests.replicas.promises import Written, judge_read_along, judge_writer, shown
from tests.replicas.replica_logs import Writers, compare

AUDIT_SECONDS_MAX = 600
_EVENTS = (
    "log_directory_offline",
    "log_refused",
    "metadata_snapshot_impossible",
    "peer_frame_refused",
    "records_unreadable",
    "replica_records_refused",
    "replica_restarted_at_log_start",
    "replica_truncated_below_high_watermark",
    "stopped clean=False",
    "stray_log_set_aside",
)
_OURS = re.compile(rf"^(?:Traceback|\S*(?:Error|Exception)\b|{'|'.join(_EVENTS)}).*$", re.MULTILINE)
_APACHES = re.compile(r"^.*Truncating .* below high watermark.*$", re.MULTILINE)
"""Lines that nothing in such a run may cause."""


@dataclass
class Verdict:
    """What a run showed."""

    written: list[Written] = field(default_factory=list)
    records: int = 0
    """That were read back."""
    batches: int = 0
    compared_bytes: int = 0
    """Of each replica."""
    epochs: int = 0
    """Pairs of partition and leader epoch that wrote some of it."""
    segments: dict[int, int] = field(default_factory=dict)
    """By replica."""
    audited_bytes: int = 0
    apache_errors: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    not_shown: list[str] = field(default_factory=list)
    """What such a run is to show and this one has not, though nothing may be wrong."""

    @property
    def is_good(self) -> bool:
        """Whether nothing is wrong."""
        return not self.violations


def judge(campaign: Campaign) -> Verdict:
    """Judge a whole run, while its directories are there; a step that fails is a violation."""
    verdict = Verdict()
    verdict.violations += campaign.outcome.violations + campaign.reader.problems
    for step in (_judge_records, _compare_replicas, _audit, _judge_logs):
        try:
            step(campaign, verdict)
        except Exception as problem:  # noqa: BLE001  # the other steps have something to say
            verdict.violations.append(f"{step.__name__.strip('_')}: {problem!r}"[:2_000])
    verdict.not_shown += not_shown(campaign, verdict)
    return verdict


def not_shown(campaign: Campaign, verdict: Verdict) -> list[str]:
    """What a run of this layout is to show, and this one has not."""
    outcome, layout = campaign.outcome, campaign.layout
    acknowledged = sum(each.acknowledged for each in verdict.written)
    makes = dict.fromkeys("ours" if each == OURS else "Apache" for each in layout.brokers)
    found = {
        f"{outcome.cycles} of {outcome.cycles_wanted} cycles": outcome.cycles
        < outcome.cycles_wanted,
        f"{acknowledged:,} of {outcome.records_wanted:,} records acknowledged": acknowledged
        < outcome.records_wanted,
        "no replica was compared": not verdict.batches,
        **{f"no {each}": not outcome.faults[each] for each in dict.fromkeys(layout.faults)},
        **{f"no kill of a leader, {each}": not outcome.led[each] for each in makes},
        **{f"no divergence that was cut, {each}": not outcome.cut[each] for each in makes},
    }
    return [what for what, is_missing in found.items() if is_missing]


def _judge_records(campaign: Campaign, verdict: Verdict) -> None:
    stored = campaign.outcome.stored
    verdict.records = sum(each.end for each in stored.values())
    who_wrote = Writers(next(iter(campaign.cluster.brokers.values())).data, TOPIC)
    for load in campaign.loads:
        written, problems = judge_writer(load, stored, who_wrote)
        verdict.written.append(written)
        verdict.violations += load.failures + problems
    verdict.violations += judge_read_along(campaign.reader.stored, stored)


def _judge_logs(campaign: Campaign, verdict: Verdict) -> None:
    for node in campaign.cluster.nodes.values():
        broken = shown(broken_lines(node.text, is_ours=node.is_ours))
        verdict.violations += [f"node {node.node_id}: {line}" for line in broken]
        if not node.is_ours:
            verdict.apache_errors.update(error_lines(node.text))


def broken_lines(log: str, *, is_ours: bool) -> list[str]:
    """The lines of a node's log that tell of what may not be."""
    return [line[:300] for line in (_OURS if is_ours else _APACHES).findall(log)]


def _compare_replicas(campaign: Campaign, verdict: Verdict) -> None:
    brokers = campaign.cluster.brokers.values()
    for partition, high_watermark in campaign.outcome.high_watermarks.items():
        found = compare(
            {each.node_id: each.data / f"{TOPIC}-{partition}" for each in brokers}, high_watermark
        )
        verdict.batches += found.batches
        verdict.compared_bytes += found.size_bytes
        verdict.epochs += found.epochs
        for node_id, segments in found.segments.items():
            verdict.segments[node_id] = verdict.segments.get(node_id, 0) + segments
        verdict.violations += shown(found.differences)


def _audit(campaign: Campaign, verdict: Verdict) -> None:
    """Have all directories audited as a person would: indexes, sequences, metadata, all topics."""
    directories = [str(each.data) for each in campaign.cluster.nodes.values()]
    done = subprocess.run(
        [KRAFT_WIRE, "audit", "--json", *directories],
        capture_output=True,
        text=True,
        check=False,
        timeout=AUDIT_SECONDS_MAX,
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    errors = [str(each) for each in lines if each.get("severity") == "error"]
    if done.returncode and not errors:
        errors.append(f"audit ended with {done.returncode}: {done.stderr[-2_000:]}")
    verdict.violations += [f"audit: {each}" for each in shown(errors)]
    if lines:
        verdict.audited_bytes = lines[-1]["summary"]["bytes"]
    if verdict.audited_bytes < len(campaign.cluster.brokers) * verdict.compared_bytes:
        verdict.violations.append(f"audit: saw {verdict.audited_bytes} bytes, which is not all")
