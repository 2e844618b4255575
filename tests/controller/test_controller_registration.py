"""ControllerRegistration: what another controller says of itself, and what no log may hold."""

import pytest

from kraft_wire.metadata.records import VersionedRecord
from kraft_wire.model import Uuid
from kraft_wire.wire.generated.controller_registration import (
    ControllerRegistrationResponse,
    Feature,
    Listener,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.feature_level_record import FeatureLevelRecord
from kraft_wire.wire.generated.register_controller_record import RegisterControllerRecord
from tests.controller.cluster import OneNodeCluster
from tests.controller.plain_requests import registration


def test_controller_registers_and_replaces_its_former_self() -> None:
    cluster = OneNodeCluster()
    cluster.ask(registration(), 0)
    cluster.ask(registration(incarnation_id=Uuid(b"j" * 16)), 0)
    seen = cluster.loader.image.controllers[7]
    assert seen.incarnation_id == Uuid(b"j" * 16)
    assert seen.endpoints["CONTROLLER"].port == 9
    assert seen.features["metadata.version"] == (7, 30)


@pytest.mark.parametrize(
    "fields",
    [
        {"controller_id": -1},
        {"listeners": [Listener(name="A"), Listener(name="A")]},
        {"listeners": [Listener(name="A", security_protocol=9)]},
        {"features": [Feature(name="a"), Feature(name="a")]},
        {"features": [Feature(name="a", min_supported_version=2, max_supported_version=1)]},
    ],
)
def test_registration_that_no_log_may_hold_is_refused(fields: dict[str, object]) -> None:
    cluster = OneNodeCluster()
    response = cluster.ask(registration(**fields), 0)
    assert isinstance(response, ControllerRegistrationResponse)
    assert response.error_code == ErrorCode.INVALID_REQUEST
    assert cluster.loader.image.controllers == {}


def test_no_controller_is_ready_to_migrate_from_zookeeper() -> None:
    """ClusterControlManager.registerController of 4.3.1 does not record what the request says."""
    cluster = OneNodeCluster()
    cluster.ask(registration(zk_migration_ready=True), 0)
    record = cluster.committed[-1].record
    assert isinstance(record, RegisterControllerRecord)
    assert not record.zk_migration_ready


@pytest.mark.parametrize(("level", "is_taken"), [(14, False), (15, True)])
def test_controllers_register_from_3_7_on(level: int, is_taken: bool) -> None:
    """ClusterControlManager.registerController of 4.3.1, at the levels of 3.6-IV2 and 3.7-IV0."""
    cluster = OneNodeCluster()
    record = FeatureLevelRecord(name="metadata.version", feature_level=level)
    cluster.commit([VersionedRecord(record)])
    response = cluster.ask(registration(), 0)
    assert isinstance(response, ControllerRegistrationResponse)
    refused = (ErrorCode.UNSUPPORTED_VERSION, ErrorCode.UNSUPPORTED_VERSION.message)
    answer = response.error_code, response.error_message
    assert answer == ((ErrorCode.NONE, "") if is_taken else refused)
    assert list(cluster.loader.image.controllers) == ([7] if is_taken else [])
