"""The figures of many runs, as tables on the terminal."""

from typing import Final

from rich.console import Console
from rich.text import Text

from kraft_wire.cli.tables import fitted, new_table, wide_console
from kraft_wire.sim.runs.campaign import Totals

__all__ = ["counted", "show_totals"]

_FAILURES_MAX: Final = 50


def counted(counts: dict[str, int]) -> str:
    """Return `name count, …` in the order of the names."""
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items())) or "none"


def show_totals(totals: Totals) -> None:
    """Print sums, counts by operation, fault, invariant and mark, and the violations."""
    console = wide_console()
    head = new_table("", "")
    head.show_header = False
    head.add_row("seeds", f"{totals.seeds:,}")
    head.add_row("events", f"{totals.events:,}")
    head.add_row("useful events", f"{totals.useful_events:,}")
    head.add_row("trace hash", totals.trace_hash)
    head.add_row("events a second and core", f"{totals.events_per_core_second:,.0f}")
    head.add_row("virtual time", f"{totals.virtual_us / 3.6e9:,.1f} h")
    head.add_row("records committed", f"{totals.committed:,}")
    head.add_row("histories explained", f"{totals.registers:,}")
    console.print(head)
    _print_counts(console, "operation", totals.operations)
    _print_counts(console, "fault", totals.faults)
    _print_counts(console, "invariant", totals.looked)
    _print_counts(console, "reached", totals.coverage)
    if totals.failures:
        table = new_table("seed", "invariant", "events", "violation")
        for seed, failure in sorted(totals.failures, key=lambda one: one[0])[:_FAILURES_MAX]:
            row = (str(seed), failure.invariant, f"{failure.events:,}", failure.text)
            table.add_row(*map(Text, row))
        console.print()
        console.print(fitted(table, console.width))
        console.print(f"{len(totals.failures):,} violations, {table.row_count} shown")
    else:
        console.print("\n0 violations")


def _print_counts(console: Console, what: str, counts: dict[str, int]) -> None:
    table = new_table(what, "times")
    table.columns[1].justify = "right"
    for name, count in sorted(counts.items()):
        table.add_row(name, f"{count:,}")
    console.print()
    console.print(table)
