"""BrokerRegistration: who may be a broker, under which epoch, and what a new life leaves behind."""

import pytest

from kraft_wire.metadata.image import NO_LEADER
from kraft_wire.metadata.records import VersionedRecord
from kraft_wire.model import Uuid
from kraft_wire.wire.generated.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    Feature,
    Listener,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.feature_level_record import FeatureLevelRecord
from kraft_wire.wire.generated.partition_change_record import PartitionChangeRecord
from kraft_wire.wire.generated.register_broker_record import RegisterBrokerRecord
from tests.controller.broker_cluster import LEVELS, BrokerCluster, directory, registration
from tests.metadata.observed_records import observed_records


def feature(name: str, low: int, high: int) -> Feature:
    return Feature(name=name, min_supported_version=low, max_supported_version=high)


MV = feature("metadata.version", 7, 30)


def test_registration_is_written_as_apaches_controller_wrote_it() -> None:
    theirs = next(
        each
        for each in observed_records("metadata_log.jsonl")
        if isinstance(each.record, RegisterBrokerRecord)
    )
    record = theirs.record
    assert isinstance(record, RegisterBrokerRecord)
    cluster = BrokerCluster()
    features = [
        feature(each.name, each.min_supported_version, each.max_supported_version)
        for each in record.features
    ]
    listeners = [
        Listener(
            name=each.name,
            host=each.host,
            port=each.port,
            security_protocol=each.security_protocol,
        )
        for each in record.end_points
    ]
    request = BrokerRegistrationRequest(
        broker_id=record.broker_id,
        incarnation_id=record.incarnation_id,
        listeners=listeners,
        features=features,
        rack=record.rack,
        log_dirs=record.log_dirs,
    )
    answer = cluster.request(request)
    assert isinstance(answer, BrokerRegistrationResponse)
    written = cluster.committed[-1]
    record.broker_epoch = cluster.loader.last_offset
    assert written == VersionedRecord(record, theirs.version)
    assert answer.broker_epoch == cluster.loader.last_offset


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"broker_id": -1, "cluster_id": "other"}, ErrorCode.INVALID_REQUEST),
        ({"listeners": [Listener(name="", host="h", port=1)]}, ErrorCode.INVALID_REQUEST),
        (
            {"listeners": [Listener(name="P", host="h", port=1, security_protocol=9)]},
            ErrorCode.INVALID_REQUEST,
        ),
        ({"features": [feature("x", -1, 1), MV]}, ErrorCode.INVALID_REQUEST),
        ({"cluster_id": "other", "log_dirs": []}, ErrorCode.INCONSISTENT_CLUSTER_ID),
        (
            {"is_migrating_zk_broker": True, "log_dirs": []},
            ErrorCode.BROKER_ID_NOT_REGISTERED,
        ),
        ({"log_dirs": [], "features": []}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": [Uuid(bytes(15) + b"\x63")]}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": [directory(3), directory(3)]}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": [directory(2)]}, ErrorCode.INVALID_REGISTRATION),
        ({"features": [feature("x", 1, 2)]}, ErrorCode.UNSUPPORTED_VERSION),
        ({"features": [feature("metadata.version", 7, 29)]}, ErrorCode.UNSUPPORTED_VERSION),
        ({"features": [feature("x", 0, 1)]}, ErrorCode.INVALID_REGISTRATION),
        ({"features": [MV, feature("kraft.version", 1, 1)]}, ErrorCode.UNSUPPORTED_VERSION),
        ({"features": [MV]}, ErrorCode.UNSUPPORTED_VERSION),
    ],
)
def test_registration_with_a_mistake_is_refused_and_writes_nothing(
    fields: dict[str, object], error: ErrorCode
) -> None:
    cluster = BrokerCluster([2], keeps_elr=True)
    before = len(cluster.committed)
    request = registration(3)
    for name, value in fields.items():
        setattr(request, name, value)
    answer = cluster.request(request)
    assert answer == BrokerRegistrationResponse(error_code=error, broker_epoch=-1)
    assert len(cluster.committed) == before


def test_second_incarnation_waits_until_the_session_of_the_first_has_ended() -> None:
    cluster = BrokerCluster([2])
    first = cluster.epochs[2]
    cluster.now_ms = 9_000
    assert cluster.register(2, 2).error_code == ErrorCode.DUPLICATE_BROKER_REGISTRATION
    cluster.now_ms = 9_001
    answer = cluster.register(2, 2)
    assert answer.error_code == ErrorCode.NONE
    assert answer.broker_epoch > first
    assert cluster.loader.image.brokers[2].fenced


def test_broker_that_never_sent_a_heartbeat_has_no_session_to_protect_it() -> None:
    cluster = BrokerCluster()
    cluster.register(2)
    assert cluster.register(2, 2).error_code == ErrorCode.NONE


def test_same_incarnation_amends_its_registration_and_stays_what_it_is() -> None:
    cluster = BrokerCluster([2])
    epoch = cluster.epochs[2]
    answer = cluster.register(2, rack="r")
    broker = cluster.loader.image.brokers[2]
    assert answer.broker_epoch == broker.broker_epoch == epoch
    assert (broker.rack, broker.fenced) == ("r", False)
    cluster.pass_time(20_000, alive=[2])
    assert not cluster.loader.image.brokers[2].fenced


@pytest.mark.parametrize("level", [0, 1])
@pytest.mark.parametrize("offered", [None, (0, 0), (0, 1), (1, 1)])
def test_a_broker_supports_the_quorums_level_or_is_refused(
    level: int, offered: tuple[int, int] | None
) -> None:
    """KIP-853: kraft.version is in no record of the metadata; a broker without it has level 0."""
    cluster = BrokerCluster()
    cluster.controller.kraft_version = level
    levels = {**LEVELS}
    del levels["kraft.version"]
    if offered is not None:
        levels["kraft.version"] = offered
    features = [feature(name, low, high) for name, (low, high) in levels.items()]
    low, high = offered or (0, 0)
    expected = ErrorCode.NONE if low <= level <= high else ErrorCode.UNSUPPORTED_VERSION
    assert cluster.register(2, features=features).error_code == expected


def test_a_feature_that_is_named_twice_is_looked_at_twice() -> None:
    """ClusterControlManager.processRegistrationFeature of 4.3.1."""
    low, high = LEVELS["metadata.version"]
    features = [feature(name, *levels) for name, levels in LEVELS.items()]
    cluster = BrokerCluster()
    again = [*features, feature("metadata.version", low, high)]
    assert cluster.register(2, features=again).error_code == ErrorCode.NONE
    other = [*features, feature("metadata.version", 1, 2)]
    assert cluster.register(3, features=other).error_code == ErrorCode.UNSUPPORTED_VERSION


def test_new_incarnation_leaves_every_isr_before_it_registers() -> None:
    cluster = BrokerCluster([2, 3])
    cluster.create("t", [2, 3])
    cluster.create("u", [2])
    cluster.create("v", [3])
    cluster.now_ms += 9_001
    since, offset = len(cluster.committed), cluster.loader.last_offset
    answer = cluster.register(2, 2)
    kinds = [PartitionChangeRecord, PartitionChangeRecord, RegisterBrokerRecord]
    assert [type(each) for each in cluster.written(since)] == kinds
    assert answer.broker_epoch == offset + 1, "where the batch begins"
    assert (cluster.partition("t").leader, cluster.partition("t").isr) == (3, (3,))
    assert cluster.partition("u").leader == NO_LEADER
    assert cluster.partition("u").isr == (2,), "the last member stays"
    early = cluster.heartbeat(2, offset=offset + 2)
    assert (early.is_caught_up, early.is_fenced) == (False, True), "its registration is behind"
    late = cluster.heartbeat(2, offset=offset + 3)
    assert (late.is_caught_up, late.is_fenced) == (True, False)
    assert [cluster.partition(name).leader for name in "tuv"] == [3, 2, 3]
    assert cluster.partition("u").leader_epoch == 2


@pytest.mark.parametrize("is_fenced", [True, False])
@pytest.mark.parametrize(
    ("version", "names_epoch", "eligible"), [(4, True, (2,)), (4, False, ()), (2, True, ())]
)
def test_unclean_restart_ends_eligibility_where_eligible_replicas_are_kept(
    version: int, names_epoch: bool, eligible: tuple[int, ...], is_fenced: bool
) -> None:
    """KIP-966: also of a broker that comes back before anybody saw that its session was over."""
    cluster = BrokerCluster([2], keeps_elr=True)
    cluster.create("t", [2])
    if is_fenced:
        cluster.pass_time(9_001)
        assert cluster.partition().isr == ()
        assert cluster.partition().eligible_leader_replicas == (2,)
    else:
        cluster.now_ms += 9_001
        assert cluster.partition().isr == (2,)
    previous = cluster.epochs[2] if names_epoch else -1
    cluster.register(2, 2, version=version, previous_epoch=previous)
    assert cluster.partition().eligible_leader_replicas == eligible
    cluster.heartbeat(2)
    assert (cluster.partition().leader, cluster.partition().isr) == (2, (2,))
    assert cluster.partition().leader_recovery_state == (0 if eligible else 1)


def test_level_that_knows_no_directories_records_none() -> None:
    cluster = BrokerCluster()
    cluster.commit([VersionedRecord(FeatureLevelRecord(name="metadata.version", feature_level=16))])
    assert cluster.register(2, log_dirs=[]).error_code == ErrorCode.NONE
    assert cluster.committed[-1].version == 2
    assert cluster.register(3).error_code == ErrorCode.NONE
    assert cluster.loader.image.brokers[3].log_dirs == ()
