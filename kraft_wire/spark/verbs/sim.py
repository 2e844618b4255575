"""`kraft-wire spark sim`: a campaign of seeds over Spark's workers.

Seeds that have a row are not run again, so that a campaign continues where it stopped. A sample of
the seeds is run a second time by separate tasks: the same seed must give the same trace hash on
every worker.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import SparkSession

from kraft_wire.sim.runs.campaign import Totals
from kraft_wire.spark.campaign.kinds import Kind
from kraft_wire.spark.campaign.page import write_page
from kraft_wire.spark.campaign.span import Done, Span, run_span, sample_of, spans_of
from kraft_wire.spark.campaign.table import CampaignTable, Row
from kraft_wire.spark.registration import parallelism_of
from kraft_wire.spark.workers import Amount, Tell, attempt_name, run_on_workers, silent

__all__ = ["CampaignOutcome", "Repeat", "run_campaign"]


@dataclass(frozen=True, slots=True)
class Repeat:
    """A seed that was run twice."""

    seed: int
    workers: tuple[str, str]
    hashes: tuple[str, str]

    @property
    def is_equal(self) -> bool:
        """Whether both runs had the same trace."""
        return self.hashes[0] == self.hashes[1]


@dataclass(slots=True)
class CampaignOutcome:
    """The result of a campaign."""

    totals: Totals = field(default_factory=Totals)
    rows: list[Row] = field(default_factory=list)
    """Of the campaign's seeds, in their order."""
    repeats: list[Repeat] = field(default_factory=list)
    known: int = 0
    """Seeds that had a row before."""

    @property
    def is_good(self) -> bool:
        """Whether every invariant held, and every seed that ran twice had one trace."""
        return not self.totals.failures and all(each.is_equal for each in self.repeats)

    def to_json(self) -> dict[str, Any]:
        """Return the figures for machines."""
        workers: dict[str, int] = {}
        for row in self.rows:
            workers[row.worker] = workers.get(row.worker, 0) + 1
        replays = {row.result.seed: row.replay for row in self.rows if row.result.failure}
        figures = self.totals.to_json()
        for violation in figures["violations"]:
            violation["replay"] = replays[violation["seed"]]
        return figures | {
            "seeds_known_before": self.known,
            "seeds_by_worker": workers,
            "seeds_run_twice": len(self.repeats),
            "seeds_run_on_two_workers": sum(len(set(each.workers)) > 1 for each in self.repeats),
            "seeds_with_two_traces": [each.seed for each in self.repeats if not each.is_equal],
        }


def run_campaign(
    spark: SparkSession,
    seeds: range,
    kind: Kind,
    table: CampaignTable,
    *,
    repeats: int = 20,
    seeds_per_task: int | None = None,
    tell: Tell = silent,
) -> CampaignOutcome:
    """Run the seeds that have no row in the table yet; `campaign.html` is written beside it.

    Errors: PipelineError if the campaign cannot run; violations are in the outcome. `tell` gets
    numbers of seeds (as files) and events (as records).
    """
    known = table.seeds().intersection(seeds)
    missing = [seed for seed in seeds if seed not in known]
    spans = spans_of(missing, parallelism_of(spark), seeds_per_task)
    spans += [Span((seed,), is_repeat=True) for seed in sample_of(seeds, repeats)]
    tell(Amount(files=len(known)))
    done = run_on_workers(
        spark,
        spans,
        lambda span: run_span(span, kind, table, attempt_name()),
        amount_of=lambda span, found: Amount(
            files=0 if span.is_repeat else len(span.seeds), records=found.events
        ),
        tell=tell,
    )
    outcome = CampaignOutcome(known=len(known))
    outcome.rows = sorted(
        (row for row in table.rows() if row.result.seed in seeds), key=lambda row: row.result.seed
    )
    for row in outcome.rows:
        outcome.totals.add(row.result, row.seconds)
    outcome.repeats = _repeats(outcome.rows, spans, done)
    page = table.folder / "campaign.html"
    write_page(page, kind.about, outcome.to_json(), outcome.rows)
    return outcome


def _repeats(rows: Sequence[Row], spans: Sequence[Span], done: Sequence[Done]) -> list[Repeat]:
    first = {row.result.seed: row for row in rows}
    return [
        Repeat(seed, (first[seed].worker, found.worker), (first[seed].result.trace_hash, trace))
        for span, found in zip(spans, done, strict=True)
        if span.is_repeat
        for seed, trace in found.hashes
    ]
