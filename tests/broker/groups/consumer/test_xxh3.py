"""The hash of topics for inputs of all lengths, as Kafka's library computed it."""

from pathlib import Path

from kraft_wire.broker.groups.consumer.xxh3 import xxh3_64

OBSERVED = Path(__file__).parent / "observed" / "xxh3.txt"


def data_of(length: int) -> bytes:
    """The bytes that `Xxh3Judge.java` hashes."""
    return bytes((at * at * 31 + at * 7 + length) & 0xFF for at in range(length))


def test_hash_of_every_length_is_kafkas() -> None:
    head, *lines = OBSERVED.read_text(encoding="utf-8").splitlines()
    assert "hash4j" in head
    known = {int(length): int(value, 16) for length, value in map(str.split, lines)}
    assert {0, 16, 17, 128, 129, 240, 241, 1024, 1025, 2049} <= set(known)
    assert {each: xxh3_64(data_of(each)) for each in known} == known
