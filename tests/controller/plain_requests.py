"""Requests that several tests of the controller begin with."""

from kraft_wire.model import Uuid
from kraft_wire.wire.generated.controller_registration import (
    ControllerRegistrationRequest,
    Feature,
    Listener,
)
from kraft_wire.wire.generated.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from tests.controller.cluster import OneNodeCluster


def create(cluster: OneNodeCluster, *topics: CreatableTopic) -> list[int]:
    """Create topics and return the error codes."""
    response = cluster.ask(CreateTopicsRequest(topics=list(topics)), 7)
    assert isinstance(response, CreateTopicsResponse)
    return [result.error_code for result in response.topics]


def registration(**fields: object) -> ControllerRegistrationRequest:
    """What controller 7 registers with, changed where a test says so."""
    plain: dict[str, object] = {
        "controller_id": 7,
        "incarnation_id": Uuid(b"i" * 16),
        "listeners": [Listener(name="CONTROLLER", host="h", port=9)],
        "features": [
            Feature(name="metadata.version", min_supported_version=7, max_supported_version=30)
        ],
    }
    return ControllerRegistrationRequest(**{**plain, **fields})
