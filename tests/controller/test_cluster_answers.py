"""Quotas, SCRAM, ACLs and features: our answers are those that Apache Kafka gave, in that order."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from kraft_wire.apis.api import Owner
from kraft_wire.apis.registry import APIS
from kraft_wire.broker.dispatch import handler
from kraft_wire.broker.settings import BrokerSettings
from kraft_wire.controller.requests import decide
from kraft_wire.metadata.features import SUPPORTED_FEATURES
from kraft_wire.metadata.records import VersionedRecord
from kraft_wire.node.requests.unknown_codes import unknown_code
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.feature_level_record import FeatureLevelRecord
from kraft_wire.wire.generated.register_broker_record import (
    BrokerFeature,
    RegisterBrokerRecord,
)
from kraft_wire.wire.generated.registry import message_table
from kraft_wire.wire.json_form import message_from_json, message_to_json
from tests.controller.admin_steps import Step
from tests.controller.cluster import Context, OneNodeCluster
from tests.controller.record_cluster_answers import CLOSED, OBSERVED, STORIES


def cluster_of(story: str) -> OneNodeCluster:
    """A cluster as the node of a story was formatted."""
    cluster = OneNodeCluster(STORIES[story][1])
    if story == "features":
        level = FeatureLevelRecord(name="metadata.version", feature_level=21)
        cluster.controller.kraft_version = 0
        cluster.commit([VersionedRecord(level), supporting_broker(cluster)])
    return cluster


def supporting_broker(cluster: OneNodeCluster) -> VersionedRecord:
    """A registration of broker 1 that says which levels it supports."""
    features = [
        BrokerFeature(
            name=name,
            min_supported_version=levels.min_level,
            max_supported_version=levels.max_level,
        )
        for name, levels in SUPPORTED_FEATURES.items()
    ]
    epoch = cluster.loader.last_offset + 2
    record = RegisterBrokerRecord(broker_id=1, broker_epoch=epoch, features=features)
    return VersionedRecord(record, 3)


def answered(cluster: OneNodeCluster, step: Step) -> dict[str, Any]:
    """Ask our controller, or our broker where it answers from its image."""
    request = message_from_json(message_table(f"{step.api}Request"), step.body, step.version)
    if unknown_code(request) is not None:
        return CLOSED
    if APIS[request.API_KEY].owner is Owner.BROKER:
        broker = SimpleNamespace(
            image=cluster.loader.image,
            node_id=1,
            settings=BrokerSettings.of(cluster.controller.settings),
        )
        response = handler(request.API_KEY)(broker, Context(step.version), request)
    else:
        context = Context(step.version)
        result = decide(cluster.controller, context, request)
        if result.quorum_upgrade is not None and not result.quorum_upgrade.validate_only:
            cluster.controller.kraft_version = result.quorum_upgrade.level
        cluster.commit(result.records)
        response = result.response
    return message_to_json(response, step.version)


def ordered(value: Any) -> Any:
    """Return an answer with its lists sorted: Apache's order is that of hash tables."""
    if isinstance(value, dict):
        return {key: ordered(each) for key, each in value.items()}
    if isinstance(value, list):
        return sorted((ordered(each) for each in value), key=lambda each: json.dumps(each))
    return value


def rows() -> list[Any]:
    """Every step of every story, with both answers."""
    found = []
    for story, (steps, _) in STORIES.items():
        lines = (OBSERVED / f"{story}_answers.jsonl").read_text().splitlines()[1:]
        cluster = cluster_of(story)
        for number, (step, line) in enumerate(zip(steps, lines, strict=True)):
            values = step, answered(cluster, step), json.loads(line)
            found.append(pytest.param(*values, id=f"{story}-{number:02}-{step.api}"))
    return found


def is_a_failure_of(theirs: dict[str, Any]) -> bool:
    """Whether Apache failed in itself: at codes of filters it refuses every entry without words."""
    results = theirs.get("results") or [{}]
    codes = {each.get("errorCode") for each in results}
    return "user" not in results[0] and codes == {ErrorCode.UNKNOWN_SERVER_ERROR}


@pytest.mark.parametrize(("step", "ours", "theirs"), rows())
def test_answer_equals_that_of_apache_kafka(
    step: Step, ours: dict[str, Any], theirs: dict[str, Any]
) -> None:
    """SEC-ACL-11, SEC-ACL-15, SEC-SCRAM-16."""
    if is_a_failure_of(theirs):
        text = json.dumps(ours)
        assert f'"errorCode": {ErrorCode.INVALID_REQUEST:d}' in text, step
        assert '"errorCode": 0' not in text, step
    else:
        assert ordered(ours) == ordered(theirs), step
