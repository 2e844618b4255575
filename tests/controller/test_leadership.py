"""Becoming active and giving it up: first records, the speculative image, refusals, idleness."""

import sys

import pytest

from kraft_wire.apis.api import ListenerType, Owner, Versions
from kraft_wire.apis.registry import owned
from kraft_wire.controller.controller import Controller
from kraft_wire.controller.requests import decide
from kraft_wire.metadata.features import bootstrap_records
from kraft_wire.metadata.image import BROKER_RESOURCE, EMPTY_IMAGE, MetadataImage
from kraft_wire.metadata.image_draft import MetadataFault
from kraft_wire.metadata.loader import MetadataLoader
from kraft_wire.metadata.records import VersionedRecord
from kraft_wire.settings.node_settings import NodeSettings
from kraft_wire.wire.generated.abort_transaction_record import AbortTransactionRecord
from kraft_wire.wire.generated.begin_transaction_record import BeginTransactionRecord
from kraft_wire.wire.generated.config_record import ConfigRecord
from kraft_wire.wire.generated.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.feature_level_record import FeatureLevelRecord
from kraft_wire.wire.generated.registry import message_table, request_class, response_class
from kraft_wire.wire.generated.unregister_broker import UnregisterBrokerRequest
from kraft_wire.wire.json_form import message_to_json
from kraft_wire.wire.message import Message, Struct
from kraft_wire.wire.schema import StructTable
from tests.controller.cluster import Context, OneNodeCluster, SeededRandomSource

DECIDED = owned(Owner.CONTROLLER, ListenerType.CONTROLLER)
TOLD_TWICE = (43, 45)
BOOTSTRAP = bootstrap_records({"metadata.version": 30})


def controller(**properties: str) -> Controller:
    settings = NodeSettings({name.replace("_", "."): value for name, value in properties.items()})
    return Controller(node_id=1, settings=settings, random_source=SeededRandomSource())


def activated(
    each: Controller, image: MetadataImage = EMPTY_IMAGE, *, in_transaction: bool = False
) -> list[VersionedRecord]:
    return each.become_active(
        image, leader_epoch=3, in_transaction=in_transaction, bootstrap=BOOTSTRAP, now_ms=1_000
    )


def names(records: list[VersionedRecord]) -> list[str]:
    return [each.record.NAME.removesuffix("Record") for each in records]


def leveled(level: int = 30) -> MetadataImage:
    record = FeatureLevelRecord(name="metadata.version", feature_level=level)
    return MetadataLoader().replay_batch([record], 0, 1)


def create(name: str) -> CreateTopicsRequest:
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    return CreateTopicsRequest(topics=[topic])


def test_empty_log_begins_with_the_formatted_records_as_one_transaction() -> None:
    each = controller()
    records = activated(each)
    assert names(records) == ["BeginTransaction", "FeatureLevel", "EndTransaction"]
    each.appended(records, 3, 1_000)
    assert each.image.metadata_version == 30


def test_partial_first_transaction_is_aborted_and_begun_anew() -> None:
    each = controller()
    records = activated(each, in_transaction=True)
    abort = AbortTransactionRecord(reason="Controller failover")
    assert records[0].record == abort
    assert names(records[1:]) == ["BeginTransaction", "FeatureLevel", "EndTransaction"]
    each.appended(records, 5, 1_000)
    assert each.image.metadata_version == 30


def test_log_that_has_records_needs_none_at_activation() -> None:
    assert activated(controller(), leveled()) == []


def test_transaction_that_a_former_controller_left_open_is_aborted() -> None:
    each = controller()
    first = activated(controller(), leveled(13), in_transaction=True)
    assert names(first) == ["AbortTransaction"]
    records = activated(each, leveled(), in_transaction=True)
    assert names(records) == ["AbortTransaction"]
    each.appended(records, 7, 1_000)
    assert each.image == MetadataLoader(leveled()).replay_batch(
        [BeginTransactionRecord(), records[0].record], 6, 3
    )


def test_open_transaction_below_the_level_of_transactions_is_a_fault() -> None:
    with pytest.raises(
        MetadataFault, match=r"metadata.version 12 does not support metadata transactions"
    ):
        activated(controller(), leveled(12), in_transaction=True)


def test_formatted_records_without_a_metadata_version_are_a_fault() -> None:
    other = [VersionedRecord(FeatureLevelRecord(name="group.version", feature_level=1))]
    with pytest.raises(MetadataFault, match=r"do not finalise metadata.version"):
        controller().become_active(
            EMPTY_IMAGE, leader_epoch=1, in_transaction=False, bootstrap=other, now_ms=0
        )


def test_explicit_min_insync_replicas_is_the_nodes_own() -> None:
    each = controller(min_insync_replicas="2")
    with_elr = {"metadata.version": 30, "eligible.leader.replicas.version": 1}
    records = each.become_active(
        EMPTY_IMAGE,
        leader_epoch=1,
        in_transaction=False,
        bootstrap=bootstrap_records(with_elr),
        now_ms=0,
    )
    written = [each.record for each in records if isinstance(each.record, ConfigRecord)]
    assert [(each.name, each.value) for each in written] == [("min.insync.replicas", "2")]


def test_second_request_is_decided_against_what_the_first_appended() -> None:
    cluster = OneNodeCluster()
    each = cluster.controller
    first = decide(each, Context(7), create("a"))
    each.appended(first.records, each.image.offset + 1, 0)
    again = decide(each, Context(7), create("a"))
    assert isinstance(again.response, CreateTopicsResponse)
    assert again.response.topics[0].error_code == ErrorCode.TOPIC_ALREADY_EXISTS
    assert cluster.loader.image.topic("a") is None, "nothing of it is committed"


def test_commit_of_what_was_appended_changes_nothing_for_the_active_controller() -> None:
    cluster = OneNodeCluster()
    each = cluster.controller
    first = decide(each, Context(7), create("a"))
    each.appended(first.records, each.image.offset + 1, 0)
    second = decide(each, Context(7), create("b"))
    each.appended(second.records, each.image.offset + 1, 0)
    speculative = each.image
    each.publish(cluster.loader.image)
    assert each.image is speculative


def test_lost_leadership_forgets_what_was_not_committed() -> None:
    cluster = OneNodeCluster()
    each = cluster.controller
    change = ConfigRecord(
        resource_type=BROKER_RESOURCE, resource_name="", name="message.max.bytes", value="7777"
    )
    each.appended([VersionedRecord(change)], each.image.offset + 1, 0)
    assert each.settings.integer("message.max.bytes") == 7_777
    each.renounce(cluster.loader.image)
    assert each.image is cluster.loader.image
    assert each.settings.integer("message.max.bytes") == 1_048_588
    assert not each.is_active


def test_inactive_controller_follows_the_committed_image() -> None:
    each = controller()
    image = leveled()
    each.publish(image)
    assert each.image is image


@pytest.mark.parametrize(("api_key", "versions"), DECIDED.items())
def test_inactive_controller_refuses_every_api_in_its_own_shape(
    api_key: int, versions: Versions
) -> None:
    table = message_table(request_class(api_key).NAME)
    for version in range(versions[0], versions[1] + 1):
        request = _filled(table.struct, request_class(api_key))
        assert isinstance(request, Message)
        result = decide(controller(), Context(version), request)
        assert result.records == ()
        answer, shown = result.response, 1
        if api_key in TOLD_TWICE:  # of each partition, and of the whole where a version has room
            answer, _ = response_class(api_key).decode(answer.encode(version), version)
            shown = 1 if (api_key, version) == (43, 0) else 2
        codes = _error_codes(message_to_json(answer, version))
        assert codes == [ErrorCode.NOT_CONTROLLER] * shown, (version, result.response)


def _filled(table: StructTable, kind: type[Struct]) -> Struct:
    """A request with one element in each list, so that an answer has a place for the error."""
    module = sys.modules[kind.__module__]
    values: dict[str, object] = {}
    for field in table.fields:
        if field.is_array and field.struct is not None:
            values[field.name] = [_filled(field.struct, getattr(module, field.struct.class_name))]
        elif field.is_array:
            values[field.name] = ["x"] if field.kind == "string" else _one_number(field.kind)
    return kind(**values)


def _one_number(kind: str) -> list[int]:
    return [0] if kind == "int32" else []


def _error_codes(form: object) -> list[int]:
    if isinstance(form, list):
        return [code for each in form for code in _error_codes(each)]
    if not isinstance(form, dict):
        return []
    own = [form["errorCode"]] if "errorCode" in form else []
    return [code for code in own if code or len(form) == 2] + [
        code for value in form.values() for code in _error_codes(value)
    ]


def test_idle_controller_writes_a_record_that_only_moves_the_offset() -> None:
    each = controller()
    assert each.idle_deadline_ms() is None
    activated(each, leveled())
    assert each.idle_deadline_ms() == 1_500
    assert each.idle_records(1_499) == []
    idle = each.idle_records(1_500)
    assert names(idle) == ["NoOp"]
    each.appended(idle, 9, 1_500)
    assert each.idle_deadline_ms() == 2_000
    assert each.image.offset == 9
    each.renounce(leveled())
    assert each.idle_deadline_ms() is None


def test_interval_of_nothing_writes_no_idle_records() -> None:
    each = controller(metadata_max_idle_interval_ms="0")
    activated(each, leveled())
    assert each.idle_deadline_ms() is None
    assert each.idle_records(1 << 40) == []


def test_a_controller_follows_its_own_settings_and_those_of_all_brokers() -> None:
    """Its own override them; those of another node do not concern it."""
    cluster = OneNodeCluster()

    def threads(node: str, value: str | None) -> int:
        record = ConfigRecord(
            resource_type=BROKER_RESOURCE, resource_name=node, name="num.io.threads", value=value
        )
        cluster.commit([VersionedRecord(record)])
        return cluster.controller.settings.integer("num.io.threads")

    usual = cluster.controller.settings.integer("num.io.threads")
    assert threads("", "21") == 21
    assert threads("1", "22") == 22
    assert threads("2", "23") == 22
    assert threads("1", "24") == 24
    assert threads("", "25") == 24
    assert threads("1", None) == 25
    assert threads("", None) == usual


def test_only_an_atomic_change_has_to_fit_into_one_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kraft_wire.controller.requests.BATCH_BYTES_MAX", 10)
    cluster = OneNodeCluster(brokers=2)
    create = CreateTopicsRequest(
        topics=[CreatableTopic(name="t", num_partitions=1, replication_factor=1)]
    )
    refused = cluster.ask(create, 7)
    assert isinstance(refused, CreateTopicsResponse)
    assert refused.topics[0].error_code == ErrorCode.RECORD_LIST_TOO_LARGE
    assert cluster.loader.image.topic("t") is None
    cluster.ask(UnregisterBrokerRequest(broker_id=2), 0)
    assert [*cluster.loader.image.brokers] == [1]
