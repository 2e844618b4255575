"""Ids as Kafka writes and reads them."""

import random
from base64 import urlsafe_b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraft_wire.model import Uuid, random_uuid, sooner, uuid_from_text, uuid_to_text


class RandomSource:
    """Draws from a seed."""

    def __init__(self, seed: int) -> None:
        self.below = random.Random(seed).randrange


@given(st.binary(min_size=16, max_size=16))
def test_id_is_read_as_it_is_written_with_padding_or_without(raw: bytes) -> None:
    text = uuid_to_text(Uuid(raw))
    assert (len(text), text + "==") == (22, urlsafe_b64encode(raw).decode())
    for written in (text, f"{text}=", f"{text}=="):
        assert uuid_from_text(written) == raw


@pytest.mark.parametrize("text", ["", "A" * 21, "A" * 23, "A" * 25, "A" * 22 + "===", "Ä" * 22])
def test_text_that_is_no_id_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="22-character id"):
        uuid_from_text(text)


def test_drawn_id_is_of_version_4_and_begins_with_no_dash() -> None:
    random_source = RandomSource(1)
    drawn = {random_uuid(random_source) for _ in range(500)}
    assert len(drawn) == 500
    assert {(each[6] >> 4, each[8] >> 6) for each in drawn} == {(4, 2)}
    firsts = {uuid_to_text(each)[0] for each in drawn}
    assert len(firsts) == 63
    assert "-" not in firsts


def test_sooner_is_the_smaller_of_what_there_is() -> None:
    times = [None, 0, 5, 7]
    for first in times:
        for second in times:
            there = [each for each in (first, second) if each is not None]
            assert sooner(first, second) == min(there, default=None)
