"""Reading beside transactions: what read_committed shows and hides (KIP-98)."""

import struct
import time
from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.requests import LATEST, fetch, fetch_partition, list_offsets
from kraft_wire.conformance.subject import Subject
from kraft_wire.conformance.transactions import ended, new_producer, written_in
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.fetch import FetchResponse
from kraft_wire.wire.generated.list_offsets import ListOffsetsResponse

_READ_COMMITTED: Final = 1
_TIMES: Final = struct.Struct(">qq")
_TIMES_AT: Final = 27
_CLOCKS_DIFFER_MS: Final = 3_600_000


@case("Fetch", "KIP-98, read_committed")
def record_of_an_open_transaction(broker: Subject, version: int) -> None:
    """read_committed does not read records of an open transaction; the last stable offset waits.

    Write a record in a transaction, fetch with both isolation levels.
    """
    topic, producer = broker.topic(), new_producer(broker)
    written_in(broker, producer, topic)
    for isolation, is_seen in ((0, True), (_READ_COMMITTED, False)):
        request = fetch(topic, version, isolation_level=isolation, min_bytes=0)
        answer = broker.ask(request, version, FetchResponse)
        expect.error(answer, fetch_partition("error_code"), ErrorCode.NONE)
        expect.equal(answer, fetch_partition("high_watermark"), 1)
        expect.equal(answer, fetch_partition("last_stable_offset"), 0)
        records = answer.responses[0].partitions[0].records
        expect.true(bool(records) == is_seen, f"records: {is_seen}", records)


@case("Fetch", "KIP-98, aborted transactions")
def aborted_transaction_is_named(broker: Subject, version: int) -> None:
    """A read_committed fetch lists aborted transactions with their first offsets.

    Abort a transaction with a record, fetch with both isolation levels.
    """
    topic, producer = broker.topic(), new_producer(broker)
    written_in(broker, producer, topic)
    ended(broker, producer, committed=False)
    plain = broker.ask(fetch(topic, version), version, FetchResponse)
    expect.equal(plain, fetch_partition("aborted_transactions"), None)
    request = fetch(topic, version, isolation_level=_READ_COMMITTED)
    answer = broker.ask(request, version, FetchResponse)
    expect.equal(answer, fetch_partition("last_stable_offset"), 2)
    path = fetch_partition("aborted_transactions[0]")
    expect.equal(answer, f"{path}.producer_id", producer.producer_id)
    expect.equal(answer, f"{path}.first_offset", 0)
    behind = fetch(topic, version, 1, isolation_level=_READ_COMMITTED)
    broker.ask(behind, version, FetchResponse)


@case("Fetch", "KIP-98, aborted transactions")
def committed_transaction_is_read(broker: Subject, version: int) -> None:
    """Records and the marker of a committed transaction are read, and none is listed as aborted.

    Commit a transaction with a record, fetch with read_committed.
    """
    topic, producer = broker.topic(), new_producer(broker)
    written_in(broker, producer, topic)
    ended(broker, producer, committed=True)
    request = fetch(topic, version, isolation_level=_READ_COMMITTED)
    answer = broker.ask(request, version, FetchResponse)
    expect.equal(answer, fetch_partition("last_stable_offset"), 2)
    path = fetch_partition("aborted_transactions")
    seen = expect.at(answer, path)
    expect.true(not seen, "no aborted transaction", seen, path)
    expect.as_release(seen == [], "an empty list", seen, path)


@case("ListOffsets", "KIP-98, read_committed", since=2)
def latest_offset_of_an_open_transaction(broker: Subject, version: int) -> None:
    """The latest offset of read_committed is the start of the first open transaction.

    Write a record in a transaction, ask with both isolation levels.
    """
    topic, producer = broker.topic(), new_producer(broker)
    written_in(broker, producer, topic)
    for isolation, wanted in ((0, 1), (_READ_COMMITTED, 0)):
        request = list_offsets(topic, LATEST, isolation_level=isolation)
        answer = broker.ask(request, version, ListOffsetsResponse)
        expect.equal(answer, "topics[0].partitions[0].offset", wanted)


@case("Fetch", "KIP-98, control batches", until=4)
def time_of_a_marker(broker: Subject, version: int) -> None:
    """The marker that ends a transaction has the time at which it was written.

    Commit a transaction with a record, fetch the marker.
    """
    topic, producer = broker.topic(), new_producer(broker)
    before_ms = int(time.time() * 1000) - _CLOCKS_DIFFER_MS
    written_in(broker, producer, topic)
    ended(broker, producer, committed=True)
    answer = broker.ask(fetch(topic, version, 1), version, FetchResponse)
    expect.error(answer, fetch_partition("error_code"), ErrorCode.NONE)
    marker = bytes(answer.responses[0].partitions[0].records or b"")  # type: ignore[arg-type]  # decoded frames hold bytes
    expect.true(len(marker) > _TIMES_AT + _TIMES.size, "a marker", marker)
    first_ms, last_ms = _TIMES.unpack_from(marker, _TIMES_AT)
    expect.true(first_ms > before_ms, f"a time after {before_ms}", first_ms)
    expect.true(last_ms == first_ms, str(first_ms), last_ms)
