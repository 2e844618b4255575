"""What producers can do next on a node, for each partition: the errors and the offsets."""

from __future__ import annotations

import time

from kraft_wire.wire.generated.error_code import ErrorCode as E
from kraft_wire.wire.generated.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tests.apache.odd_directories.looking import Seen, await_stable, end_of
from tests.apache.odd_directories.making import TOPIC, Made, batch, begin, end, open_id
from tests.apache.odd_directories.pair import ask
from tests.server.wire_client import WireClient

__all__ = ["go_on"]


def go_on(client: WireClient, made: Made) -> dict[str, Seen]:
    """Let each producer continue: repeat its last batch, go on, abort, and begin anew."""
    seen: list[Seen] = [_idempotent(client, made, n) for n in range(made.partitions)]
    served = [n for n in range(made.partitions) if not seen[n]["next"][0]]
    begun = {number: begin(client, open_id(number)) for number in served}
    await_stable(client, TOPIC, served)
    for number, producer in begun.items():
        seen[number]["after the abort"] = end_of(client, TOPIC, number)
        if producer is not None:
            data = batch(b"new", at_ms=made.base_ms, is_transactional=True, **producer)
            name = open_id(number)
            seen[number]["transaction"] = _produce(client, number, data, name)
            seen[number]["commit"] = end(client, name, producer, commit=True)
    await_stable(client, TOPIC, served)
    return {f"{TOPIC}-{number}": each for number, each in enumerate(seen)}


def _idempotent(client: WireClient, made: Made, number: int) -> Seen:
    """Send the last batch of the idempotent producer again, and the next one."""
    seen: Seen = {}
    for name, sequence in (("repeated", 6), ("next", 8)):
        more = {"producer_id": made.idempotent_id, "producer_epoch": 0, "base_sequence": sequence}
        data = batch(b"x", b"y", at_ms=made.base_ms + 3000, **more)
        seen[name] = _produce(client, number, data)
    return seen


def _produce(
    client: WireClient, number: int, records: bytes, transactional_id: str | None = None
) -> tuple[int, int]:
    data = PartitionProduceData(index=number, records=records)
    request = ProduceRequest(
        transactional_id=transactional_id,
        acks=-1,
        timeout_ms=10_000,
        topic_data=[TopicProduceData(name=TOPIC, partition_data=[data])],
    )
    for _ in range(100):
        (answer,) = ask(client, request, 12).responses[0].partition_responses
        if answer.error_code != E.CONCURRENT_TRANSACTIONS:
            break
        time.sleep(0.02)
    return answer.error_code, answer.base_offset
