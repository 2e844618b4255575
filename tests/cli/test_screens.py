"""docs/SCREENS.md shows what the verbs show, and nothing is cut in it."""

import pytest

from tests.cli.screens import PAGE, WIDTHS, page, screen, screens


def test_page_is_what_the_code_makes() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "python -m tests.cli.screens"


@pytest.mark.parametrize("width", WIDTHS)
def test_screens_hold_every_cell_and_are_no_wider(width: int) -> None:
    for command, table in screens():
        shown = screen(table, width)
        assert max(map(len, shown.splitlines())) <= width, command
        for column in table.columns:
            assert all(str(cell) in shown for cell in column.cells), (command, column.header)
