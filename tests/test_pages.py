"""Every shell command of README and docs runs, in page order from one directory, or is listed."""

import pytest

from tests import pages


@pytest.mark.kcat
@pytest.mark.client
@pytest.mark.slow
def test_commands_of_all_pages_run_in_page_order_and_none_fails() -> None:
    counts = pages.run_pages()
    assert counts["README.md"] >= 11
    assert {name for name, count in counts.items() if count} >= {
        "README.md",
        "TESTING.md",
        "FAULTS.md",
        "AUDIT.md",
        "SECURITY.md",
    }


def test_each_reason_is_needed_by_a_command() -> None:
    found = [each for page in pages.pages() for each in pages.commands(page)]
    assert found
    unneeded = [
        start for start in pages.NOT_RUN if not any(each.text.startswith(start) for each in found)
    ]
    assert unneeded == []
