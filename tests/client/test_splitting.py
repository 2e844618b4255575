"""A batch in smaller ones (KIP-126): nothing is lost, renumbered or larger than asked."""

from hypothesis import assume, example, given
from hypothesis import strategies as st

from kraft_wire.client.splitting import record_bytes_at_most, split, unpacked_bytes
from kraft_wire.wire.compression.codecs import STORED_LIMITS
from kraft_wire.wire.records.batch_builder import BatchBuilder
from kraft_wire.wire.records.memory_records import iter_batches
from kraft_wire.wire.records.record import NO_SEQUENCE, increment_sequence
from kraft_wire.wire.records.record_batch import RecordBatch

LAST_SEQUENCE = (1 << 31) - 1
SIZES = st.lists(st.integers(0, 300), min_size=2, max_size=12)


@given(
    sizes=SIZES,
    bytes_max=st.integers(1, 1500),
    sequence=st.sampled_from([NO_SEQUENCE, 0, 7, LAST_SEQUENCE - 2]),
)
def test_pieces_are_the_batch_again(sizes: list[int], bytes_max: int, sequence: int) -> None:
    producer_id = -1 if sequence == NO_SEQUENCE else 5
    builder = BatchBuilder(
        producer_id=producer_id, producer_epoch=producer_id, base_sequence=sequence
    )
    for number, size in enumerate(sizes):
        builder.append(1000 + number, b"k%d" % number, bytes(size), [("h", b"x")])
    batch = one(bytes(builder.build()))
    assume(bytes_max < unpacked_bytes(batch))

    pieces = [one(bytes(each)) for each in split(batch, bytes_max)]
    assert len(pieces) > 1
    assert all(each.records_count == 1 or unpacked_bytes(each) <= bytes_max for each in pieces)
    records = [record for each in pieces for record in each.iter_records(STORED_LIMITS)]
    assert [(r.timestamp, r.key, r.value, r.headers) for r in records] == [
        (r.timestamp, r.key, r.value, r.headers) for r in batch.iter_records(STORED_LIMITS)
    ]
    for each in pieces:
        assert (each.producer_id, each.producer_epoch) == (producer_id, producer_id)
        assert each.base_sequence == sequence
        if sequence != NO_SEQUENCE:
            sequence = increment_sequence(sequence, each.records_count)


def test_as_few_pieces_as_fit_are_made() -> None:
    builder = BatchBuilder()
    for number in range(10):
        builder.append(number, None, bytes(100), [])
    batch = one(bytes(builder.build()))
    assert len(split(batch, unpacked_bytes(batch) - 1)) == 2
    assert len(split(batch, 1)) == 10
    reckoned = record_bytes_at_most(None, bytes(100), [])
    first = BatchBuilder()
    first.append(0, None, bytes(100), [])
    exactly_two = first.size_bytes + reckoned
    assert len(split(batch, exactly_two)) == 5, "as large as is allowed"
    assert len(split(batch, exactly_two - 1)) == 10


def one(data: bytes) -> RecordBatch:
    (batch,) = iter_batches(data)
    return batch


BLOBS = st.one_of(st.none(), st.binary(max_size=200))
NAMES = st.text(alphabet="a\N{LATIN SMALL LETTER E WITH ACUTE}\N{EURO SIGN}", max_size=80)


@example(None, None, [("\N{EURO SIGN}" * 80, None)], 0)
@given(BLOBS, BLOBS, st.lists(st.tuples(NAMES, BLOBS), max_size=20), st.integers(0, 1 << 41))
def test_record_is_never_larger_than_is_reckoned(
    key: bytes | None, value: bytes | None, headers: list[tuple[str, bytes | None]], later_ms: int
) -> None:
    builder = BatchBuilder()
    builder.append(0, b"", b"", [])
    before = unpacked_bytes(one(bytes(builder.build())))
    builder = BatchBuilder()
    builder.append(0, b"", b"", [])
    builder.append(later_ms, key, value, headers)
    taken = unpacked_bytes(one(bytes(builder.build()))) - before
    most = record_bytes_at_most(key, value, headers)
    assert taken <= most
    assert most < 3 * taken + 36 + 10 * len(headers), "nor reckoned much too large"
