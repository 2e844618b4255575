"""``kraft-wire transactions`` beside ``kafka-transactions.sh`` on the same broker, of either make.

Every row of one is a row of the other, and what one aborts the other no longer finds.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from kraft_wire.cli.transactions.command import DESCRIBED, HANGING, LISTED, PRODUCERS
from tests.apache.java_process import Outcome
from tests.apache.node import ApacheNode
from tests.apache.tools import run_tool
from tests.cluster_command import kraft_wire
from tests.raw_transactions import RawProducer, leave_hanging
from tests.server_process import ServerProcess
from tests.waiting import until

pytestmark = [pytest.mark.java, pytest.mark.slow]

UNVERIFIED = {"transaction.partition.verification.enable": "false"}


@pytest.fixture(scope="module", params=["ours", "apache"])
def bootstrap(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """A broker without verification, with transactions in several states."""
    directory = tmp_path_factory.mktemp("node")
    kind = ServerProcess if request.param == "ours" else ApacheNode
    with kind(directory, overrides=UNVERIFIED) as node:
        written(node.bootstrap)
        yield node.bootstrap


def written(bootstrap: str) -> None:
    """Leave ids that are empty, open, committed and aborted."""
    for name in ("committed", "aborted", "open"):
        with RawProducer(bootstrap, name) as producer:
            producer.create("t")
            producer.init(timeout_ms=900_000).produce("t", 0, b"v")  # open for the last test too
            producer.produce("t", 0, b"w")
            if name != "open":
                producer.end(commit=name == "committed")
            else:
                producer.commit_offset("g", "t", 7)
    with RawProducer(bootstrap, "empty") as producer:
        producer.init()
    until(lambda: states(bootstrap)["committed"] == "CompleteCommit", lambda: states(bootstrap))
    until(lambda: states(bootstrap)["aborted"] == "CompleteAbort", lambda: states(bootstrap))


def states(bootstrap: str) -> dict[str, str]:
    return {each["transactional_id"]: each["transaction_state"] for each in told(bootstrap, "list")}


def told(bootstrap: str, *arguments: str) -> Any:
    done = kraft_wire("transactions", *arguments, "--json", "-b", bootstrap)
    assert done.returncode == 0, done
    return json.loads(done.stdout)


def ours(bootstrap: str, *arguments: str) -> list[list[str]]:
    """The words of our table, its header first."""
    done = kraft_wire("transactions", *arguments, "--bootstrap-server", bootstrap)
    assert done.returncode == 0, done
    return rows(done.stdout)


def theirs(bootstrap: str, *arguments: str) -> list[list[str]]:
    """The words of Apache's table."""
    done = apaches(bootstrap, *arguments)
    assert done.exit_code == 0, done.text
    return rows(done.stdout)


def apaches(bootstrap: str, *arguments: str) -> Outcome:
    return run_tool("kafka-transactions", ["--bootstrap-server", bootstrap, *arguments])


def rows(table: str) -> list[list[str]]:
    """Header, then the other rows in an order of their own: Apache's comes from hash maps."""
    header, *others = [line.split() for line in table.splitlines()]
    return [header, *sorted(others)]


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        ((), {"committed", "aborted", "open", "empty"}),
        (("--transactional-id-pattern", "(comm|ab).*ed"), {"committed", "aborted"}),
        (("--duration-filter", "86400000"), {"empty"}),
    ],
)
def test_list_shows_what_apaches_tool_shows(
    bootstrap: str, options: tuple[str, ...], ids: set[str]
) -> None:
    found = ours(bootstrap, "list", *options)
    assert found == theirs(bootstrap, "list", *options)
    assert found[0] == list(LISTED)
    assert {row[0] for row in found[1:]} - {"forced"} == ids


def test_describe_shows_what_apaches_tool_shows(bootstrap: str) -> None:
    for name in ("open", "committed", "empty"):
        arguments = ("describe", "--transactional-id", name)
        found, expected = ours(bootstrap, *arguments), theirs(bootstrap, *arguments)
        assert found[0] == expected[0] == list(DESCRIBED)
        duration = DESCRIBED.index("TransactionDurationMs")
        for table in (found, expected):
            assert (table[1].pop(duration) == "None") is (name == "empty")
            table[1][7:] = [",".join(sorted("".join(table[1][7:]).split(",")))]
        assert found == expected
    assert ours(bootstrap, "describe", "--transactional-id", "open")[1][-1].count(",") == 1
    nobody = kraft_wire("transactions", "describe", "--transactional-id", "x", "-b", bootstrap)
    assert (nobody.returncode, nobody.stderr) == (
        1,
        "kraft-wire transactions: transactional id x: TRANSACTIONAL_ID_NOT_FOUND\n",
    )
    assert apaches(bootstrap, "describe", "--transactional-id", "x").exit_code == 1


def test_describe_producers_shows_what_apaches_tool_shows(bootstrap: str) -> None:
    for place in ((), ("--broker-id", "1")):
        arguments = ("describe-producers", "--topic", "t", "--partition", "0", *place)
        found = ours(bootstrap, *arguments)
        assert found == theirs(bootstrap, *arguments)
        assert found[0] == list(PRODUCERS)
        assert [row[-1] for row in found].count("None") == 2, "of three producers two have ended"
        assert len(found) == 4


def test_hanging_transactions_are_found_and_aborted(bootstrap: str) -> None:
    for producer_id in (700, 701):
        leave_hanging(bootstrap, "hung", producer_id, [b"x", b"y"])
    leave_hanging(bootstrap, "elsewhere", 702, [b"z"])
    find = ("find-hanging", "--topic", "hung")
    found = ours(bootstrap, *find)
    assert found == theirs(bootstrap, *find)
    assert found[0] == list(HANGING)
    assert [row[2:4] for row in found[1:]] == [["700", "3"], ["701", "3"]]
    everywhere = ours(bootstrap, "find-hanging", "--broker-id", "1")
    assert everywhere == theirs(bootstrap, "find-hanging", "--broker-id", "1")
    assert sorted(row[0] for row in everywhere[1:]) == ["elsewhere", "hung", "hung"]
    longer = ("--partition", "0", "--max-transaction-timeout", "61")
    assert ours(bootstrap, *find, *longer) == [list(HANGING)]
    open_on_t = ("find-hanging", "--topic", "t", "--max-transaction-timeout", "0")
    assert ours(bootstrap, *open_on_t) == [list(HANGING)], "its coordinator knows it"

    (first, second) = (row[5] for row in found[1:])
    where = ("abort", "--topic", "hung", "--partition", "0")
    done = kraft_wire("transactions", *where, "--start-offset", first, "-b", bootstrap)
    assert (done.returncode, done.stdout) == (
        0,
        "hung-0: aborted the transaction of producer 700 in epoch 3\n",
    )
    again = kraft_wire("transactions", *where, "--start-offset", first, "-b", bootstrap)
    assert (again.returncode, again.stderr) == (
        1,
        f"kraft-wire transactions: hung-0: no open transaction begins at offset {first}\n",
    )
    assert theirs(bootstrap, *find)[1:] == found[2:]
    assert apaches(bootstrap, *where, "--start-offset", second).exit_code == 0
    assert ours(bootstrap, *find) == [list(HANGING)]
    by_id = ("--producer-id", "702", "--producer-epoch", "3", "--coordinator-epoch", "-1")
    elsewhere = ("abort", "--topic", "elsewhere", "--partition", "0")
    assert told(bootstrap, *elsewhere, *by_id)["producer_id"] == 702
    assert theirs(bootstrap, "find-hanging", "--broker-id", "1") == [list(HANGING)]


def test_force_terminate_aborts_the_open_transaction_of_an_id(bootstrap: str) -> None:
    def by_ours(name: str) -> None:
        told(bootstrap, "forceTerminateTransaction", "--transactional-id", name)

    def by_apaches(name: str) -> None:
        done = apaches(bootstrap, "forceTerminateTransaction", "--transactionalId", name)
        assert done.exit_code == 0, done.text

    for terminate in (by_ours, by_apaches):
        with RawProducer(bootstrap, "forced") as producer:
            producer.create("forced")
            producer.init().produce("forced", 0, b"v")
        terminate("forced")
        found = told(bootstrap, "describe", "--transactional-id", "forced")
        assert (found["transaction_state"], found["topic_partitions"]) == ("Empty", [])
        assert found["producer_epoch"] >= producer.epoch + 2
