"""The figures of many runs, as tables on the terminal."""

from rich.console import Console
from rich.table import Table

from kraft_wire.cli.output import wide_console
from kraft_wire.sim.runs.campaign import Totals

__all__ = ["counted", "show_totals"]


def counted(counts: dict[str, int]) -> str:
    """Return `name count, …` in the order of the names."""
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items())) or "none"


def show_totals(totals: Totals) -> None:
    """Print sums, counts by fault, invariant and mark, and the violations."""
    console = wide_console()
    head = Table("", "", show_header=False, box=None, pad_edge=False)
    head.add_row("seeds", f"{totals.seeds:,}")
    head.add_row("events", f"{totals.events:,}")
    head.add_row("useful events", f"{totals.useful_events:,}")
    head.add_row("trace hash", totals.trace_hash)
    head.add_row("events a second and core", f"{totals.events_per_core_second:,.0f}")
    head.add_row("virtual time", f"{totals.virtual_us / 3.6e9:,.1f} h")
    head.add_row("records committed", f"{totals.committed:,}")
    head.add_row("histories explained", f"{totals.registers:,}")
    head.add_row("operations", counted(totals.operations))
    console.print(head)
    _print_counts(console, "fault", totals.faults)
    _print_counts(console, "invariant", totals.looked)
    _print_counts(console, "reached", totals.coverage)
    if totals.failures:
        table = Table("seed", "invariant", "events", "what", title="violations")
        for seed, failure in sorted(totals.failures, key=lambda one: one[0])[:50]:
            table.add_row(str(seed), failure.invariant, str(failure.events), failure.text[:160])
        console.print(table)
    else:
        console.print("\n0 violations")


def _print_counts(console: Console, what: str, counts: dict[str, int]) -> None:
    table = Table(what, "times", box=None, pad_edge=False, title_justify="left")
    table.columns[1].justify = "right"
    for name, count in sorted(counts.items()):
        table.add_row(name, f"{count:,}")
    console.print()
    console.print(table)
