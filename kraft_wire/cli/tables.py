"""The one table style of all verbs: no frame, bold headings, as wide as the terminal, never cut.

A table in a file or a pipe has whole lines. On a terminal that is too narrow the widest column is
folded, or, where that is not enough, the columns follow in blocks that each begin with the first.
"""

import sys
from collections.abc import Sequence
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.style import StyleType
from rich.table import Column, Table
from rich.text import Text

__all__ = ["fitted", "new_table", "print_table", "wide_console"]

_WIDTH: Final = 10_000
"""Of tables in a file or a pipe: wide enough for every line."""
_GAP: Final = 2
"""Blanks between two columns."""
_FOLDED_MIN: Final = 24
"""A column that is folded to less than this is hard to read."""


class _PlainTable(Table):
    """A table whose cells are shown as they are: names and values may have brackets."""

    def add_row(
        self,
        *renderables: RenderableType | None,
        style: StyleType | None = None,
        end_section: bool = False,
    ) -> None:
        cells = (Text(each) if isinstance(each, str) else each for each in renderables)
        super().add_row(*cells, style=style, end_section=end_section)


def new_table(*columns: str, title: str | None = None) -> Table:
    """Return an empty table."""
    table = _PlainTable(
        title=title,
        title_justify="left",
        title_style="bold",
        box=None,
        pad_edge=False,
        header_style="bold",
    )
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def print_table(table: Table) -> None:
    """Print a table."""
    console = wide_console()
    console.print(fitted(table, console.width))


def wide_console() -> Console:
    """Return a console as wide as the terminal; a file or a pipe gets whole lines."""
    width = None if sys.stdout.isatty() else _WIDTH
    return Console(width=width, highlight=False, emoji=False)


def fitted(table: Table, width: int) -> RenderableType:
    """Return a table, or its columns in blocks, so that a screen of a width shows all of it."""
    widths = [_width(column) for column in table.columns]
    total = sum(widths) + _GAP * (len(widths) - 1)
    if total <= width or total - max(widths) + _FOLDED_MIN <= width:
        return table
    title = [] if table.title is None else [Text(str(table.title), style="bold")]
    blocks: list[RenderableType] = []
    for columns in _blocks(widths, width):
        blocks += ["", _part(table, columns)] if blocks else [_part(table, columns)]
    return Group(*title, *blocks)


def _blocks(widths: Sequence[int], width: int) -> list[list[int]]:
    """Return the columns of one table part: the first one, and as many others as fit."""
    blocks: list[list[int]] = []
    room = 0
    for at, own in enumerate(widths[1:], start=1):
        needed = own + _GAP
        if not blocks or needed > room:
            blocks.append([0])
            room = width - widths[0]
        blocks[-1].append(at)
        room -= needed
    return blocks


def _part(table: Table, columns: Sequence[int]) -> Table:
    """Return some columns of a table, without the rows that have nothing in them."""
    part = new_table()
    chosen = [table.columns[at] for at in columns]
    for column in chosen:
        part.columns.append(column.copy())
        part.columns[-1]._index = len(part.columns) - 1
        part.columns[-1].overflow = "fold"
    for row in zip(*(column.cells for column in chosen), strict=True):
        if any(_text(cell).plain for cell in row[1:]):
            part.add_row(*row)
    return part


def _width(column: Column) -> int:
    texts = [_text(column.header), *map(_text, column.cells)]
    return max(line.cell_len for text in texts for line in text.split("\n") or [text])


def _text(cell: RenderableType) -> Text:
    return cell if isinstance(cell, Text) else Text.from_markup(str(cell))
