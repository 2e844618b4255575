"""Our controller's answers are those that Apache Kafka gave to the same requests in that order."""

import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from kraft_wire.apis.api import Owner
from kraft_wire.apis.registry import APIS
from kraft_wire.broker.dispatch import handler
from kraft_wire.broker.settings import BrokerSettings
from kraft_wire.controller.controller import ControllerResult
from kraft_wire.controller.requests import decide
from kraft_wire.metadata.image import BROKER_RESOURCE
from kraft_wire.metadata.records import VersionedRecord
from kraft_wire.settings.broker import FIXED_WHILE_RUNNING, OWN_DEFAULTS, OWN_KEYS
from kraft_wire.wire.generated.config_record import ConfigRecord
from kraft_wire.wire.generated.registry import message_table
from kraft_wire.wire.json_form import message_from_json, message_to_json
from kraft_wire.wire.message import Message
from tests.controller.admin_steps import STEPS, Step
from tests.controller.cluster import Context, OneNodeCluster
from tests.controller.record_admin_answers import ANSWERS, learn_ids, resolved

HEAD, *THEIRS = [json.loads(line) for line in ANSWERS.read_text().splitlines()]


def normal(answer: dict[str, Any], ids: dict[str, str]) -> dict[str, Any]:
    """Return an answer without what two runs cannot agree on: drawn ids, and hash order."""
    names = {topic_id: f"${name}" for name, topic_id in ids.items()}
    for rows in answer.values():
        if not isinstance(rows, list):
            continue
        rows.sort(
            key=lambda row: (
                row.get("name") or "",
                row.get("resourceName", ""),
                row.get("resourceType", 0),
            )
        )
        for row in rows:
            if row.get("configs"):
                comparable_configs(row)
            if "topicId" in row:
                row["topicId"] = names.get(row["topicId"], _shape(row["topicId"]))
    return answer


def described(cluster: OneNodeCluster, request: Message, version: int) -> Message:
    """Ask the broker's handlers that read image and settings and nothing else."""
    broker = SimpleNamespace(
        image=cluster.loader.image,
        node_id=1,
        settings=BrokerSettings.of(cluster.controller.settings),
    )
    return handler(request.API_KEY)(broker, Context(version), request)


def comparable_configs(row: dict[str, Any]) -> None:
    """Leave out of described settings what is ours: notes, own keys, stricter defaults."""
    for config in row["configs"]:
        if config["name"] in FIXED_WHILE_RUNNING:
            config["readOnly"] = True  # false in Kafka, where they may change
        if config.get("documentation") is not None:
            config["documentation"] = bool(config["documentation"])
    # Apache forgets the hours of the file once the milliseconds were set dynamically.
    hidden = {*OWN_KEYS, *OWN_DEFAULTS, "log.retention.hours"}
    row["configs"] = sorted(
        (each for each in row["configs"] if each["name"] not in hidden),
        key=lambda each: each["name"],
    )


def _shape(topic_id: str) -> str:
    """What can be compared of an id that an old version did not tell when it was drawn."""
    return topic_id if topic_id.startswith("AAAAAAAA") else "drawn"


def answers_in_order() -> Iterator[tuple[Step, dict[str, Any], dict[str, Any]]]:
    """Ask our controller everything and pair each answer with theirs."""
    cluster = OneNodeCluster(HEAD["properties"])
    their_min_isr = ConfigRecord(
        resource_type=BROKER_RESOURCE, resource_name="", name="min.insync.replicas", value="1"
    )
    cluster.commit([VersionedRecord(their_min_isr)])  # Apache's node does so because of its ELR
    our_ids, their_ids = dict[str, str](), dict[str, str]()
    for step, theirs in zip(STEPS, THEIRS, strict=True):
        dry = bool(step.body.get("validateOnly"))
        table = message_table(f"{step.api}Request")
        request = message_from_json(table, resolved(step.body, our_ids), step.version)
        if APIS[request.API_KEY].owner is Owner.CONTROLLER:
            response = cluster.ask(request, step.version)
        else:
            response = described(cluster, request, step.version)
        ours = message_to_json(response, step.version)
        for answer, ids in ((ours, our_ids), (theirs, their_ids)):
            if dry:
                for topic in answer.get("topics", []):
                    topic.pop("topicId", None)
            else:
                learn_ids(answer, ids)
        yield step, normal(ours, our_ids), normal(theirs, their_ids)


@pytest.mark.parametrize(
    ("step", "ours", "theirs"),
    [
        pytest.param(*row, id=f"{number:03}-{row[0].api}")
        for number, row in enumerate(answers_in_order())
    ],
)
def test_answer_equals_that_of_apache_kafka(
    step: Step, ours: dict[str, Any], theirs: dict[str, Any]
) -> None:
    assert ours == theirs, step


def test_result_without_records_is_due_at_once() -> None:
    cluster = OneNodeCluster()
    request = message_from_json(
        message_table("CreateTopicsRequest"),
        {"topics": [], "timeoutMs": 1, "validateOnly": False},
        7,
    )
    result = decide(cluster.controller, Context(7), request)
    assert isinstance(result, ControllerResult)
    assert result.records == []
