"""ListTransactions, API key 66: the transactional ids that a broker coordinates (KIP-664)."""

from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.subject import Subject
from kraft_wire.conformance.transactions import Producer, begun, new_producer
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)

_DURATION_SINCE: Final = 1
_PATTERN_SINCE: Final = 2
_HOUR_MS: Final = 3_600_000


def _listed(
    broker: Subject, version: int, producer: Producer, request: ListTransactionsRequest
) -> str | None:
    """Return the state in which the producer is listed, None where it is not."""
    answer = broker.ask(request, version, ListTransactionsResponse)
    expect.error(answer, "error_code", ErrorCode.NONE)
    for index, each in enumerate(answer.transaction_states):
        if each.transactional_id == producer.transactional_id:
            path = f"transaction_states[{index}].producer_id"
            expect.equal(answer, path, producer.producer_id)
            return each.transaction_state
    return None


def _is(found: str | None, wanted: str | None) -> None:
    expect.true(found == wanted, str(wanted), found, "transaction_states")


@case("ListTransactions", "KIP-664")
def filter_by_state(broker: Subject, version: int) -> None:
    """Transactional ids in other states are omitted.

    Begin a transaction; list all, the ongoing and the empty ones.
    """
    topic, producer = broker.topic(), new_producer(broker)
    _is(_listed(broker, version, producer, ListTransactionsRequest()), "Empty")
    begun(broker, producer, topic)
    for states, wanted in (([], "Ongoing"), (["Ongoing"], "Ongoing"), (["Empty"], None)):
        request = ListTransactionsRequest(state_filters=states)
        _is(_listed(broker, version, producer, request), wanted)


@case("ListTransactions", "KIP-664")
def filter_by_producer_id(broker: Subject, version: int) -> None:
    """Transactional ids with other producer ids are omitted.

    List a producer by its id, and by the next id.
    """
    producer = new_producer(broker)
    for producer_id, wanted in ((producer.producer_id, "Empty"), (1 << 60, None)):
        request = ListTransactionsRequest(producer_id_filters=[producer_id])
        _is(_listed(broker, version, producer, request), wanted)


@case("ListTransactions", "KIP-664")
def unknown_state(broker: Subject, version: int) -> None:
    """The response lists unknown states, each once.

    List the transactional ids in the states Ongoing and Sleeping, the latter twice.
    """
    new_producer(broker)
    request = ListTransactionsRequest(state_filters=["Sleeping", "Ongoing", "Sleeping"])
    answer = broker.ask(request, version, ListTransactionsResponse)
    expect.error(answer, "error_code", ErrorCode.NONE)
    expect.equal(answer, "unknown_state_filters", ["Sleeping"])


@case("ListTransactions", "KIP-994", since=_DURATION_SINCE)
def filter_by_duration(broker: Subject, version: int) -> None:
    """Transactions that run for a shorter time are omitted.

    Begin a transaction; list those of any duration, of 0 ms and of one hour.
    """
    topic, producer = broker.topic(), new_producer(broker)
    begun(broker, producer, topic)
    for _ in broker.attempts("a transaction that runs"):
        request = ListTransactionsRequest(duration_filter=0, state_filters=["Ongoing"])
        found = broker.prepare(request, ListTransactionsResponse)
        names = [each.transactional_id for each in found.transaction_states]
        if producer.transactional_id in names:
            break
    for duration_ms, wanted in ((-1, "Ongoing"), (0, "Ongoing"), (_HOUR_MS, None)):
        request = ListTransactionsRequest(duration_filter=duration_ms)
        _is(_listed(broker, version, producer, request), wanted)


@case("ListTransactions", "KIP-1152", since=_PATTERN_SINCE)
def filter_by_pattern(broker: Subject, version: int) -> None:
    """A pattern must match the whole transactional id.

    List by the whole name, by its beginning, by its beginning and `.*`, and by an empty pattern.
    """
    producer = new_producer(broker)
    name = producer.transactional_id
    patterns = ((name, "Empty"), (name[:-1], None), (f"{name[:-1]}.*", "Empty"), ("", "Empty"))
    for pattern, wanted in patterns:
        request = ListTransactionsRequest(transactional_id_pattern=pattern)
        _is(_listed(broker, version, producer, request), wanted)


@case("ListTransactions", "KIP-1152", since=_PATTERN_SINCE)
def pattern_with_repetitions(broker: Subject, version: int) -> None:
    """A part of a pattern may be repeated: any number of times, at least once, at most once.

    List by the whole name, followed by a character that it does not have with `*`, `?` and `+`.
    """
    producer = new_producer(broker)
    for repetition, wanted in (("*", "Empty"), ("?", "Empty"), ("+", None)):
        pattern = f"{producer.transactional_id}#{repetition}"
        request = ListTransactionsRequest(transactional_id_pattern=pattern)
        _is(_listed(broker, version, producer, request), wanted)


@case("ListTransactions", "KIP-1152", since=_PATTERN_SINCE)
def wrong_pattern(broker: Subject, version: int) -> None:
    """An invalid pattern is refused with INVALID_REGULAR_EXPRESSION.

    List by the pattern "(".
    """
    new_producer(broker)
    request = ListTransactionsRequest(transactional_id_pattern="(")
    answer = broker.ask(request, version, ListTransactionsResponse)
    expect.error(answer, "error_code", ErrorCode.INVALID_REGULAR_EXPRESSION)


@case("ListTransactions", "KIP-1152", since=_PATTERN_SINCE)
def pattern_with_counts(broker: Subject, version: int) -> None:
    """A part of a pattern may be repeated a number of times; a lower bound is needed.

    List by the whole name, followed by a character that it does not have with counts of both
    kinds, and by braces that are not counts; by the whole name with its last character zero times.
    """
    producer = new_producer(broker)
    for counts, wanted in (
        ("{0}", "Empty"),
        ("{0,1}", "Empty"),
        ("{1}", None),
        ("{1,}", None),
        ("{,1}", None),
        ("{1", None),
    ):
        pattern = f"{producer.transactional_id}#{counts}"
        request = ListTransactionsRequest(transactional_id_pattern=pattern)
        _is(_listed(broker, version, producer, request), wanted)
    request = ListTransactionsRequest(transactional_id_pattern=f"{producer.transactional_id}{{0}}")
    _is(_listed(broker, version, producer, request), None)


@case("ListTransactions", "KIP-1152", since=_PATTERN_SINCE)
def pattern_with_classes(broker: Subject, version: int) -> None:
    """A pattern has classes of characters, groups and alternatives.

    List by patterns for the last character of the name, a digit.
    """
    producer = new_producer(broker)
    name = producer.transactional_id
    for pattern, wanted in (
        ("[0-9]", "Empty"),
        ("\\d", "Empty"),
        ("\\D", None),
        ("[^0-9]", None),
        ("[^a-z]", "Empty"),
        ("[a\\d]", "Empty"),
        (f"(?:x|{name[-1]})", "Empty"),
        ("(x|y)", None),
        ("\\w", "Empty"),
        ("\\s", None),
        (f"[{name[-1]}-{name[-1]}]", "Empty"),
        (f"\\Q{name[-1]}\\E", "Empty"),
    ):
        request = ListTransactionsRequest(transactional_id_pattern=name[:-1] + pattern)
        _is(_listed(broker, version, producer, request), wanted)


@case("ListTransactions", "KIP-1152", since=_PATTERN_SINCE)
def pattern_with_numbers(broker: Subject, version: int) -> None:
    """A pattern has characters by their number, in base 16 or 8.

    List by patterns for the last character of the name and for another one.
    """
    producer = new_producer(broker)
    name = producer.transactional_id
    last = ord(name[-1])
    for number, wanted in ((last, "Empty"), (ord("x"), None)):
        for pattern in (
            f"\\x{number:02x}",
            f"\\x{{{number:x}}}",
            f"\\{number:03o}",
            f"[\\x{number:02x}]",
        ):
            request = ListTransactionsRequest(transactional_id_pattern=name[:-1] + pattern)
            _is(_listed(broker, version, producer, request), wanted)


@case("ListTransactions", "KIP-1152", since=_PATTERN_SINCE)
def pattern_with_named_classes(broker: Subject, version: int) -> None:
    """A pattern has classes of characters by their POSIX names.

    List by patterns for the last character of the name, a digit, and for a "-" in it.
    """
    producer = new_producer(broker)
    name = producer.transactional_id
    last, before = name[-1], name.rpartition("-id-")[0]
    for dash, digit, wanted in (
        ("[[:punct:]]", "[[:digit:]]", "Empty"),
        ("[[:graph:]]", "[[:alnum:]]", "Empty"),
        ("[[:print:]]", "[[:xdigit:]]", "Empty"),
        ("[[:ascii:]]", "[[:word:]]", "Empty"),
        ("[[:^word:]]", "[[:^alpha:]]", "Empty"),
        ("-", "[[:alpha:]]", None),
        ("[[:alnum:]]", last, None),
        ("[[:space:][:cntrl:][:blank:]]", last, None),
        ("-", "[[:upper:][:lower:]]", None),
        ("[^[:punct:]]", last, None),
    ):
        pattern = f"{before}{dash}{name[len(before) + 1 : -1]}{digit}"
        request = ListTransactionsRequest(transactional_id_pattern=pattern)
        _is(_listed(broker, version, producer, request), wanted)


@case("ListTransactions", "KIP-1152", since=_PATTERN_SINCE)
def wrong_patterns(broker: Subject, version: int) -> None:
    """Each kind of mistake in a pattern is refused with INVALID_REGULAR_EXPRESSION.

    List by patterns without an end, with a range that goes backwards, with nothing to repeat.
    """
    new_producer(broker)
    for pattern in ("[a", "[b-a]", "*a", "a{2,1}", "\\", "(a", "a)", "\\y"):
        request = ListTransactionsRequest(transactional_id_pattern=pattern)
        answer = broker.ask(request, version, ListTransactionsResponse)
        expect.error(answer, "error_code", ErrorCode.INVALID_REGULAR_EXPRESSION)
