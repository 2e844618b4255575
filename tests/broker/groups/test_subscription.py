"""Reading the topics of a subscription, and never failing on bytes that are none."""

from __future__ import annotations

import random

import pytest

from kraft_wire.broker.groups.classic.subscription import subscribed_topics
from tests.broker.groups.requests import subscription


@pytest.mark.parametrize("version", range(4))
def test_topics_of_every_version_are_read(version: int) -> None:
    assert subscribed_topics(subscription("a", "bc", "é", version=version)) == ("a", "bc", "é")
    assert subscribed_topics(subscription(version=version)) == ()


@pytest.mark.parametrize(
    "metadata",
    [
        b"",
        b"\x00",
        b"\x00\x00\x00\x00",
        b"\xff\xff\x00\x00\x00\x00",
        b"\x00\x00\xff\xff\xff\xff",
        b"\x00\x00\x7f\xff\xff\xff",
        b"\x00\x00\x00\x00\x00\x01\x00\x05abc",
        b"\x00\x00\x00\x00\x00\x01\xff\xff\x00",
        b"\x00\x00\x00\x00\x00\x01\x00\x01\xff",
    ],
)
def test_what_is_no_subscription_names_no_topics(metadata: bytes) -> None:
    assert subscribed_topics(metadata) is None


def test_mutated_subscriptions_are_read_or_not_but_never_fail() -> None:
    random_source = random.Random(1)
    for _ in range(2_000):
        metadata = bytearray(subscription("topic", "other"))
        for _ in range(random_source.randrange(1, 4)):
            metadata[random_source.randrange(len(metadata))] = random_source.randrange(256)
        del metadata[random_source.randrange(len(metadata)) + 1 :]
        found = subscribed_topics(bytes(metadata))
        assert found is None or all(isinstance(topic, str) for topic in found)
