"""`kraft-wire transactions` against our node: what it prints, and what it refuses in one line.

`tests/apache/test_transactions_command.py` holds its rows to those of Apache's own tool.
"""

import json
from collections.abc import Callable

import pytest
from typer.testing import CliRunner, Result

from kraft_wire.cli.transactions.command import LISTED, app
from kraft_wire.client import BrokerConnection
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.list_transactions import ListTransactionsResponse
from kraft_wire.wire.message import Message
from tests.raw_transactions import RawProducer
from tests.server_process import ServerProcess

Transactions = Callable[..., Result]


@pytest.fixture
def run(module_server: ServerProcess) -> Transactions:
    """The command, pointed at a running broker."""

    def invoke(*arguments: str) -> Result:
        return CliRunner().invoke(app, [*arguments, "-b", module_server.bootstrap])

    return invoke


def test_json_has_the_columns_as_keys_and_numbers(
    run: Transactions, module_server: ServerProcess
) -> None:
    with RawProducer(module_server.bootstrap, "of-json") as producer:
        producer.create("j")
        offset = producer.init(timeout_ms=54_321).produce("j", 0, b"v", b"w")
    (listed,) = json.loads(run("list", "--transactional-id-pattern", "of-json", "--json").stdout)
    assert listed == {
        "transactional_id": "of-json",
        "coordinator_id": 1,
        "producer_id": producer.producer_id,
        "transaction_state": "Ongoing",
    }
    described = json.loads(run("describe", "--transactional-id", "of-json", "--json").stdout)
    assert described["transaction_duration_ms"] >= 0
    assert described["current_transaction_start_time_ms"] > 0
    assert described["transaction_timeout_ms"] == 54_321
    assert described["topic_partitions"] == [{"topic": "j", "partition": 0}]
    (known,) = json.loads(
        run("describe-producers", "--topic", "j", "--partition", "0", "--json").stdout
    )
    assert (known["last_sequence"], known["current_transaction_start_offset"]) == (1, offset)
    for minutes in ("15", "0"):  # older than none: but its coordinator knows it
        found = run("find-hanging", "--topic", "j", "--max-transaction-timeout", minutes, "--json")
        assert json.loads(found.stdout) == []
    forced = json.loads(
        run("forceTerminateTransaction", "--transactional-id", "of-json", "--json").stdout
    )
    assert forced["producer_id"] == producer.producer_id
    table = run("list", "--transactional-id-pattern", "of-json").stdout.splitlines()
    assert [line.split() for line in table] == [
        list(LISTED),
        ["of-json", "1", str(producer.producer_id), "Empty"],
    ]


@pytest.mark.parametrize(
    ("arguments", "exit_code", "line"),
    [
        (("find-hanging",), 2, "give --topic or --broker-id, to bound the search"),
        (("find-hanging", "--broker-id", "1", "--partition", "0"), 2, "--partition needs --topic"),
        (
            ("abort", "--topic", "t", "--partition", "0", "--producer-id", "1"),
            2,
            "give --start-offset, or --producer-id, --producer-epoch and --coordinator-epoch",
        ),
        (
            ("describe-producers", "--topic", "t", "--partition", "0", "--broker-id", "9"),
            2,
            "no live broker has id 9",
        ),
        (
            ("list", "--transactional-id-pattern", "("),
            1,
            "broker 1: INVALID_REGULAR_EXPRESSION",
        ),
        (("find-hanging", "--topic", "nobodys"), 1, "topic 'nobodys' does not exist"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    run: Transactions, arguments: tuple[str, ...], exit_code: int, line: str
) -> None:
    done = run(*arguments)
    assert done.exit_code == exit_code, done.output
    assert done.stderr.startswith(f"kraft-wire transactions: {line}")
    assert done.stderr.count("\n") == 1


def test_an_error_that_passes_is_asked_again(
    run: Transactions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A coordinator that loads its partitions lists nothing, and does so a moment later."""
    send, loading = BrokerConnection.send, [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * 2

    def at_first_loading(
        self: BrokerConnection, request: Message, response: type[Message]
    ) -> Message:
        if response is ListTransactionsResponse and loading:
            return ListTransactionsResponse(error_code=loading.pop())
        return send(self, request, response)

    monkeypatch.setattr(BrokerConnection, "send", at_first_loading)
    assert run("list").exit_code == 0
    assert not loading


def test_a_broker_that_is_not_there_is_named_at_once() -> None:
    done = CliRunner().invoke(app, ["list", "-b", "127.0.0.1:1"])
    assert done.exit_code == 2
    assert done.stderr.startswith("kraft-wire transactions: cannot connect to 127.0.0.1:1")
