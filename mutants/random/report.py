"""What a campaign came to: a table of mutants, one of packages, and the survivors' changes."""

from collections import Counter
from collections.abc import Iterable, Sequence

from rich.markup import escape
from rich.table import Table

from mutants.random.campaign import Outcome

__all__ = ["by_package", "line", "mutant_table", "package_table", "survivors"]

_STATES = (
    "drawn", "not executed", "equivalent", "tests", "simulator", "timeout", "survived"
)  # fmt: skip


def line(found: Outcome) -> str:
    """Return one mutant in one line."""
    return (
        f"{found.id:9} {found.state:12} {found.seconds:6.1f} s  {found.place}  {found.operator}: "
        f"{_short(found.old)} -> {_short(found.new)}  {found.by.removeprefix('tests/')}"
    )


def _short(text: str, length: int = 70) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= length else flat[: length - 1] + "…"


def mutant_table(outcomes: Iterable[Outcome]) -> Table:
    """Return every mutant with what killed it."""
    table = Table(title="Random mutants")
    for column in ("id", "place", "change", "old -> new", "killed by", "s"):
        table.add_column(column, justify="right" if column == "s" else "left")
    for one in outcomes:
        is_alive = one.state == "survived"
        killed = one.by.removeprefix("tests/") or one.state
        table.add_row(
            one.id,
            one.place.removeprefix("kraft_wire/"),
            one.operator,
            escape(f"{_short(one.old)} -> {_short(one.new)}"),
            escape(killed if not is_alive else one.state.upper()),
            f"{one.seconds:.1f}",
            style="red" if is_alive else None,
        )
    return table


def by_package(outcomes: Iterable[Outcome]) -> dict[str, Counter[str]]:
    """Count states for each package, and for `all`."""
    found: dict[str, Counter[str]] = {}
    for one in outcomes:
        for name in (one.package, "all"):
            counts = found.setdefault(name, Counter())
            counts["drawn"] += 1
            counts[one.state] += 1
            counts["differs"] += one.state == "survived" and one.seeds_differ > 0
    every = found.pop("all", Counter())
    return {**dict(sorted(found.items())), "all": every}


def rate(counts: Counter[str]) -> float:
    """Return the killed share of those that were executed and are not equivalent."""
    killed = counts["tests"] + counts["simulator"] + counts["timeout"]
    judged = killed + counts["survived"]
    return killed / judged if judged else 1.0


def package_table(outcomes: Iterable[Outcome]) -> Table:
    """Return the counts of each package."""
    table = Table(title="Packages: drawn at random, and what became of them")
    table.add_column("package")
    for column in (*_STATES, "of them seen", "rate"):
        table.add_column(column, justify="right")
    for name, counts in by_package(outcomes).items():
        figures = [str(counts[state]) for state in _STATES]
        table.add_row(name, *figures, str(counts["differs"]), f"{rate(counts):.1%}")
    return table


def survivors(outcomes: Sequence[Outcome]) -> list[str]:
    """Return for each survivor its change, the line that runs it again, and who covers it."""
    return [
        f"{one.id}  {one.place}  {one.operator}\n    - {one.old}\n    + {one.new}\n"
        f"    {one.covering_tests} tests and {one.covering_seeds} seeds run it, {one.tests_run} "
        f"and {one.seeds_run} were asked, traces of {one.seeds_differ} differ; closest: "
        f"{', '.join(one.closest)}\n    python -m mutants.random --only {one.id}"
        for one in outcomes
        if one.state == "survived"
    ]
