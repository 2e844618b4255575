"""ApiVersions is encoded once in each version, and never outlives what it shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from kraft_wire.broker.broker import Broker
from kraft_wire.broker.handlers.api_versions import handle
from kraft_wire.metadata.image import FeatureRange, MetadataImage
from kraft_wire.wire.generated.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kraft_wire.wire.message import Message
from tests.broker.small_broker import broker_image, context, image_of, publish, small_broker

CREATE_TOPICS, UPDATE_FEATURES = 19, 57
ASKED = ApiVersionsRequest(client_software_name="software", client_software_version="1")


def image(level: int, epoch: int, highest: int = 30) -> MetadataImage:
    own = replace(broker_image(1), features={"metadata.version": FeatureRange(7, highest)})
    return replace(
        image_of({}, [own]),
        finalized_features={"metadata.version": level},
        finalized_features_epoch=epoch,
    )


def asked(broker: Broker, version: int) -> Message:
    return handle(broker, context(version), ASKED)


def shown(broker: Broker, version: int = 4) -> ApiVersionsResponse:
    body = asked(broker, version).encode(version)
    response, end = ApiVersionsResponse.decode(body, version)
    assert end == len(body)
    return response


def levels(response: ApiVersionsResponse) -> tuple[int, int, int]:
    """Highest supported level, finalized level, and the epoch of that."""
    (supported,), (finalized,) = response.supported_features, response.finalized_features
    epoch = response.finalized_features_epoch
    return supported.max_version, finalized.max_version_level, epoch


def test_second_client_gets_the_bytes_that_were_made_for_the_first() -> None:
    broker = small_broker(image(29, 5))
    assert asked(broker, 4) is asked(broker, 4)
    assert asked(broker, 3) is asked(broker, 3)


@pytest.mark.parametrize("version", range(5))
def test_each_version_has_its_own_form(version: int) -> None:
    broker = small_broker(image(29, 5))
    for other in range(5):
        asked(broker, other)
    answer = shown(broker, version)
    assert len(answer.api_keys) > 40
    assert len(answer.finalized_features) == (version >= 3)


def test_ranges_of_features_are_whole_and_those_from_0_are_shown_from_version_4_on() -> None:
    """Java clients of older versions throw at a range that begins with 0 (KAFKA-17492)."""
    ranges = {"metadata.version": FeatureRange(7, 30), "group.version": FeatureRange(0, 1)}
    own = replace(broker_image(1), features=ranges)
    broker = small_broker(replace(image_of({}, [own]), finalized_features={"metadata.version": 29}))
    found = {
        version: {
            each.name: (each.min_version, each.max_version)
            for each in shown(broker, version).supported_features
        }
        for version in (3, 4)
    }
    assert found[3] == {"metadata.version": (7, 30)}
    assert found[4] == {"metadata.version": (7, 30), "group.version": (0, 1)}
    (finalized,) = shown(broker).finalized_features
    assert (finalized.min_version_level, finalized.max_version_level) == (29, 29)


def test_answer_follows_levels_that_change() -> None:
    broker = small_broker(image(28, 5))
    assert levels(shown(broker)) == (30, 28, 5)
    publish(broker, image(29, 5))
    assert levels(shown(broker)) == (30, 29, 5)
    publish(broker, image(29, 6))
    assert levels(shown(broker)) == (30, 29, 6)
    publish(broker, image(29, 6, highest=29))
    assert levels(shown(broker)) == (29, 29, 6)


def test_answer_follows_what_the_active_controller_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = small_broker(image(29, 5))
    offered: Mapping[int, tuple[int, int]] | None = None
    monkeypatch.setattr(broker.controller, "controller_versions", lambda: offered)

    def forwarded() -> dict[int, tuple[int, int]]:
        return {
            each.api_key: (each.min_version, each.max_version)
            for each in shown(broker).api_keys
            if each.api_key in (CREATE_TOPICS, UPDATE_FEATURES)
        }

    assert forwarded() == {CREATE_TOPICS: (2, 7), UPDATE_FEATURES: (0, 2)}
    offered = {CREATE_TOPICS: (5, 9)}
    assert forwarded() == {CREATE_TOPICS: (5, 7)}
    offered = {UPDATE_FEATURES: (0, 1)}
    assert forwarded() == {UPDATE_FEATURES: (0, 1)}
