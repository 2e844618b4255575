"""What is read from runs of suites, and the table that is written of it."""

from __future__ import annotations

from pathlib import Path

from tests.scoreboard.go_suite import needs_broker
from tests.scoreboard.results import (
    FAILED,
    PASSED,
    SKIPPED,
    leaves,
    of_go,
    of_junit,
    table,
    written,
)

GO = """\
=== RUN   TestConn
--- FAIL: TestConn (0.31s)
    --- PASS: TestConn/close (0.10s)
    --- FAIL: TestConn/join (0.20s)
--- SKIP: TestOld (0.00s)
--- FAIL: TestWhole (1.00s)
    --- PASS: TestWhole/part (0.10s)
panic: runtime error
"""


def test_go_tests_without_subtests_are_counted() -> None:
    assert leaves(of_go(GO)) == {
        "TestConn/close": PASSED,
        "TestConn/join": FAILED,
        "TestOld": SKIPPED,
        "TestWhole": FAILED,
        "TestWhole/part": PASSED,
    }


def test_junit_counts_an_error_of_a_fixture_as_a_failure(tmp_path: Path) -> None:
    path = tmp_path / "found.xml"
    path.write_text(
        '<testsuites><testsuite><testcase classname="test.admin" name="a"/>'
        '<testcase classname="test.admin" name="b"><error/></testcase>'
        '<testcase classname="test.admin" name="c"><skipped/></testcase></testsuite></testsuites>'
    )
    assert of_junit(path) == {"admin.a": PASSED, "admin.b": FAILED, "admin.c": SKIPPED}


def test_go_test_needs_a_broker_through_the_functions_that_it_calls(tmp_path: Path) -> None:
    (tmp_path / "a_test.go").write_text(
        "func dial() { connect(SEEDS) }\n\nfunc (c *conn) twice(t *testing.T) {\n\tdial()\n}\n\n"
        "func TestNear(t *testing.T) {\n\tc.twice(t)\n}\n\nfunc TestAlone(t *testing.T) {\n}\n"
    )
    assert needs_broker([tmp_path / "a_test.go"], ["SEEDS"]) == ["TestNear"]


def test_table_names_tests_that_fail_on_one_make_alone() -> None:
    found = {
        "suite": {
            "kraft-wire": {"a": PASSED, "b": FAILED, "c": FAILED, "d": SKIPPED},
            "Apache Kafka": {"a": PASSED, "b": FAILED, "c": PASSED, "d": SKIPPED},
        }
    }
    lines = table(found)
    assert lines.splitlines()[2] == "| suite | 3 | 1 passed | 2 passed | `b` | kraft-wire: `c` |"
    page = "## Clients' own tests\n\nabove\n\n| suite |\n| old |\n\nbelow\n"
    assert written(page, lines) == f"## Clients' own tests\n\nabove\n\n{lines}\nbelow\n"
