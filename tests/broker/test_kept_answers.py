"""Answers that are kept as bytes: for how long, how many, and what is made anew."""

from __future__ import annotations

from kraft_wire.broker.response_cache import AnswersOfImage, NoAnswersOfImage, ResponseCache
from kraft_wire.metadata.image import MetadataImage
from kraft_wire.wire.generated.metadata import MetadataResponse
from kraft_wire.wire.generated.sasl_authenticate import SaslAuthenticateResponse

VERSION = 1
LIMIT = 1 << 20


def of_size(size_bytes: int) -> SaslAuthenticateResponse:
    """An answer of so many bytes."""
    empty_bytes = len(SaslAuthenticateResponse(auth_bytes=b"").encode(VERSION))
    return SaslAuthenticateResponse(auth_bytes=bytes(size_bytes - empty_bytes))


def test_answer_is_made_once_for_a_version_and_a_state() -> None:
    cache = ResponseCache()
    made: list[tuple[int, object]] = []

    def ask(version: int, state: object) -> bytes:
        def make() -> MetadataResponse:
            made.append((version, state))
            return MetadataResponse(cluster_id=f"{state}", controller_id=version)

        answer = cache.answer(version, state, make).encode(version)
        assert answer == MetadataResponse(cluster_id=f"{state}", controller_id=version).encode(
            version
        )
        return answer

    for version, state in ((9, (1,)), (10, (1,)), (9, (1,)), (9, (2,)), (9, (1,)), (10, (1,))):
        ask(version, state)
    assert made == [(9, (1,)), (10, (1,)), (9, (2,)), (9, (1,)), (10, (1,))]


def test_answers_of_an_image_are_kept_up_to_a_mebibyte_and_dropped_with_it() -> None:
    kept, image = AnswersOfImage(), MetadataImage()
    half = of_size(LIMIT // 2)
    assert kept.find(image, "a") is None
    first = kept.keep("a", half, VERSION)
    assert first.encode(VERSION) == half.encode(VERSION)
    second = kept.keep("b", half, VERSION)
    assert kept.size_bytes == LIMIT
    assert (kept.find(image, "a"), kept.find(image, "b")) == (first, second)
    third = kept.keep("c", of_size(100), VERSION)
    assert kept.size_bytes == 100, "one more than fits drops the others"
    found = [kept.find(image, each) for each in "abc"]
    assert found == [None, None, third]
    assert kept.find(MetadataImage(), "c") is None
    assert kept.size_bytes == 0
    assert kept.find(image, "c") is None


def test_answer_that_is_larger_than_all_together_is_not_kept() -> None:
    kept, image = AnswersOfImage(), MetadataImage()
    kept.find(image, "a")
    largest = kept.keep("a", of_size(LIMIT), VERSION)
    assert (kept.find(image, "a"), kept.size_bytes) == (largest, LIMIT)
    larger = kept.keep("b", of_size(LIMIT + 1), VERSION)
    assert len(larger.encode(VERSION)) == LIMIT + 1
    assert (kept.find(image, "b"), kept.size_bytes) == (None, 0)


def test_nothing_is_kept_where_answers_depend_on_who_asks() -> None:
    kept, answer = NoAnswersOfImage(), MetadataResponse()
    assert kept.keep("a", answer, VERSION) is answer
    kept.find(MetadataImage(), "a")
