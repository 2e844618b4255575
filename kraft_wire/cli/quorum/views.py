"""Prints a quorum: in the forms of `kafka-metadata-quorum`, as a table, and as JSON.

The two printed forms equal Apache's to the byte, so that readers of its output can read ours.
"""

import json
from collections.abc import Sequence
from typing import Final

from rich.table import Table
from rich.text import Text

from kraft_wire.cli.quorum.facts import QuorumFacts, ReplicaFacts
from kraft_wire.cli.tables import new_table
from kraft_wire.model import ZERO_UUID, uuid_to_text

__all__ = ["facts_json", "replication_text", "status_text", "watch_table"]

_LABEL_WIDTH: Final = 24
_COLUMNS: Final = (
    "NodeId",
    "DirectoryId",
    "LogEndOffset",
    "Lag",
    "LastFetchTimestamp",
    "LastCaughtUpTimestamp",
    "Status",
)
_LATE_MS: Final = 3_000
"""A replica that fetched longer ago than this is shown as late."""


def status_text(facts: QuorumFacts) -> str:
    """Return the eight lines of `describe --status`."""
    rows = {
        "ClusterId": facts.cluster_id,
        "LeaderId": facts.leader_id,
        "LeaderEpoch": facts.leader_epoch,
        "HighWatermark": _number(facts.high_watermark),
        "MaxFollowerLag": _number(facts.max_follower_lag),
        "MaxFollowerLagTimeMs": _number(facts.max_follower_lag_ms),
        "CurrentVoters": _members(facts.voters),
        "CurrentObservers": _members(facts.observers),
    }
    return "".join(f"{label + ':':<{_LABEL_WIDTH}}{value}\n" for label, value in rows.items())


def replication_text(facts: QuorumFacts, wall_ms: int | None = None) -> str:
    """Return the table of `describe --replication`; with a current time, as an age."""
    rows = [list(_COLUMNS)]
    for each in facts.replicas:
        row = [
            str(each.node_id),
            each.directory_id or uuid_to_text(ZERO_UUID),
            _number(each.log_end_offset),
            _number(facts.lag(each)),
            _time(each.last_fetch_ms, wall_ms),
            _time(each.last_caught_up_ms, wall_ms),
            facts.status(each),
        ]
        rows.append(row)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "".join(
        "".join(f"{cell:<{width}}\t" for cell, width in zip(row, widths, strict=True)) + "\n"
        for row in rows
    )


def watch_table(facts: QuorumFacts, wall_ms: int) -> Table:
    """Return a table for people, of one moment."""
    title = (
        f"cluster {facts.cluster_id}   leader {facts.leader_id}   epoch {facts.leader_epoch}   "
        f"high watermark {_number(facts.high_watermark)}"
    )
    table = new_table(title=title)
    for name in ("node", "log end", "lag"):
        table.add_column(name, justify="right")
    for name in ("last fetch", "caught up", "status", "directory", "endpoints"):
        table.add_column(name, overflow="fold")
    for each in facts.replicas:
        status = facts.status(each)
        table.add_row(
            str(each.node_id),
            _number(each.log_end_offset),
            _number(facts.lag(each)),
            _ago(each.last_fetch_ms, wall_ms),
            _ago(each.last_caught_up_ms, wall_ms),
            Text(status, style={"Leader": "bold green", "Observer": "dim"}.get(status, "")),
            each.directory_id or "-",
            " ".join(each.endpoints) or "-",
        )
    return table


def facts_json(facts: QuorumFacts) -> dict[str, object]:
    """Return all facts as a JSON object."""
    return {
        "cluster_id": facts.cluster_id,
        "leader_id": facts.leader_id,
        "leader_epoch": facts.leader_epoch,
        "high_watermark": facts.high_watermark,
        "max_follower_lag": facts.max_follower_lag,
        "max_follower_lag_ms": facts.max_follower_lag_ms,
        "voters": [_replica_json(facts, each) for each in facts.voters],
        "observers": [_replica_json(facts, each) for each in facts.observers],
    }


def _replica_json(facts: QuorumFacts, replica: ReplicaFacts) -> dict[str, object]:
    return {
        "node_id": replica.node_id,
        "directory_id": replica.directory_id,
        "endpoints": list(replica.endpoints),
        "log_end_offset": replica.log_end_offset,
        "lag": facts.lag(replica),
        "last_fetch_ms": replica.last_fetch_ms,
        "last_caught_up_ms": replica.last_caught_up_ms,
        "status": facts.status(replica),
    }


def _members(replicas: Sequence[ReplicaFacts]) -> str:
    """Return ids, directories and endpoints in one line, without unknown ones."""
    listed = []
    for each in replicas:
        member: dict[str, object] = {"id": each.node_id}
        if each.directory_id is not None:
            member["directoryId"] = each.directory_id
        if each.endpoints:
            member["endpoints"] = list(each.endpoints)
        listed.append(member)
    return json.dumps(listed, ensure_ascii=False)


def _number(value: int | None) -> str:
    return "-1" if value is None else str(value)


def _time(at_ms: int | None, wall_ms: int | None) -> str:
    if at_ms is None:
        return "-1"
    return str(at_ms) if wall_ms is None else f"{wall_ms - at_ms} ms ago"


def _ago(at_ms: int | None, wall_ms: int) -> Text:
    if at_ms is None:
        return Text("never", style="red")
    spent_ms = max(0, wall_ms - at_ms)
    return Text(f"{spent_ms / 1000:.1f} s ago", style="red" if spent_ms > _LATE_MS else "")
