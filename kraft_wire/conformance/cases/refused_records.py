"""Produce, API key 0: what is refused beside partitions and records that are right."""

import time

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.requests import TIMESTAMP_MS, batch, produce, produce_partition
from kraft_wire.conformance.subject import Subject
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.produce import PartitionProduceData, ProduceResponse
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record


@case("Produce", "org.apache.kafka.common.requests.ProduceRequest, validateRecords")
def no_batch_beside_another(broker: Subject, version: int) -> None:
    """A partition whose records end inside a batch is refused, and no other one.

    Produce to three partitions: zero bytes, a record, and the first 10 bytes of a batch.
    """
    topic = broker.topic(3)
    request = produce(topic, version, b"")
    for each, records in ((1, batch(b"a")), (2, batch(b"b")[:10])):
        data = PartitionProduceData(index=each, records=records)
        request.topic_data[0].partition_data.append(data)
    answer = broker.ask(request, version, ProduceResponse)
    codes = {
        one.index: one.error_code for each in answer.responses for one in each.partition_responses
    }
    refused = int(ErrorCode.INVALID_RECORD)
    wanted = {0: refused, 1: 0, 2: refused}
    expect.true(codes == wanted, str(wanted), codes, "responses")


@case("Produce", "KIP-467, Per-record Error Messages", since=8)
def record_too_old_is_named(broker: Subject, version: int) -> None:
    """The response names the record whose time is refused, and only that one.

    Produce a record of now and one of 2023 to a topic that allows one day.
    """
    topic = broker.topic(configs={"message.timestamp.before.max.ms": "86400000"})
    now_ms = int(time.time() * 1000)
    times = (now_ms, TIMESTAMP_MS, now_ms)
    records = build_batch([Record(None, b"a", timestamp=each) for each in times])
    request = produce(topic, version, bytes(records))
    answer = broker.ask(request, version, ProduceResponse)
    expect.error(answer, produce_partition("error_code"), ErrorCode.INVALID_TIMESTAMP)
    errors = answer.responses[0].partition_responses[0].record_errors
    found = [each.batch_index for each in errors]
    expect.true(found == [1], "index 1", found, produce_partition("record_errors"))
