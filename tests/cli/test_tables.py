"""Tables on terminals of every width: nothing is cut, and what fits stays whole."""

import io

import pytest
from rich.console import Console
from rich.table import Table
from rich.text import Text

from kraft_wire.cli.tables import fitted, new_table


def table(*widths: int) -> Table:
    """Two rows, whose cells are as wide as asked; the second has nothing in its last cell."""
    found = new_table(*(f"h{at}" for at in range(len(widths))), title="what it is")
    first = [str(at) * width for at, width in enumerate(widths)]
    found.add_row(*first)
    found.add_row(*(Text(each, style="red") for each in first[:-1]), "")
    return found


def shown(given: Table, width: int) -> list[str]:
    out = io.StringIO()
    Console(width=width, file=out).print(fitted(given, width))
    return [line.rstrip() for line in out.getvalue().splitlines()]


@pytest.mark.parametrize("width", [40, 80, 120])
@pytest.mark.parametrize(
    "widths", [(3, 3), (10, 20, 30), (30, 30, 30), (5, 10, 15, 10, 12, 16, 40), (5, 60, 60)]
)
def test_every_cell_is_there_and_no_line_is_longer(widths: tuple[int, ...], width: int) -> None:
    lines = shown(table(*widths), width)
    assert max(map(len, lines)) <= width
    text = "".join(lines)
    for at, each in enumerate(widths):
        is_last = at == len(widths) - 1
        assert text.count(str(at)) - text.count(f"h{at}") >= each * (1 if is_last else 2), lines
        assert f"h{at}" in text


def test_table_that_fits_is_left_whole() -> None:
    given = table(10, 20, 30)
    assert fitted(given, 64) is given


def test_one_wide_column_is_folded_where_that_leaves_enough_of_it() -> None:
    given = table(10, 10, 60)
    assert fitted(given, 48) is given
    assert fitted(given, 47) is not given


def test_blocks_begin_with_the_first_column_and_leave_out_rows_with_nothing() -> None:
    lines = shown(table(3, 20, 20, 20, 10), 47)
    heads = [line.split() for line in lines if "h0" in line]
    assert heads == [["h0", "h1", "h2"], ["h0", "h3", "h4"]]
    assert lines[0] == "what it is"
    narrow = shown(table(3, 20, 20, 10), 47)
    at = next(number for number, line in enumerate(narrow) if "h3" in line)
    assert [line.split() for line in narrow[at + 1 :]] == [["000", "3" * 10]]


@pytest.mark.parametrize("width", [20, 200])
def test_brackets_in_a_cell_are_no_markup(width: int) -> None:
    names = ["[bold]x", "a[/b]", "[1]", "\\[c]", ":smile:"]
    found = new_table("name", "value")
    for name in names:
        found.add_row(name, "x" * 30)
    lines = shown(found, width)
    assert [line.split()[0] for line in lines if "[" in line or ":" in line] == names
