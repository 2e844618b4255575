"""Send the steps of `admin_steps.py` to a fresh Apache Kafka node and write its answers down.

    python -m tests.controller.record_admin_answers

Only when the steps change or another release is to be followed: the answers are committed.
"""

import json
import tempfile
import time
from pathlib import Path
from typing import Any

from kraft_wire.client import BrokerConnection
from kraft_wire.wire.generated.registry import message_table, response_class
from kraft_wire.wire.json_form import message_from_json, message_to_json
from tests.apache.jars import RELEASE
from tests.apache.node import ApacheNode
from tests.controller.admin_steps import STEPS, Step

ANSWERS = Path(__file__).parent / "observed" / "admin_answers.jsonl"
OVERRIDES = {"log.retention.hours": "72", "max.connections": "5000"}
APPLIED_AFTER_S = 1.0
"""A broker follows a change of its configuration only after the change was answered."""


def resolved(body: Any, ids: dict[str, str]) -> Any:
    """Return a body with the ids that topics got in the place of `$name`, and `!id` as `id`."""
    if isinstance(body, dict):
        return {key: resolved(value, ids) for key, value in body.items()}
    if isinstance(body, list):
        return [resolved(value, ids) for value in body]
    if isinstance(body, str) and body.startswith("$"):
        return ids[body[1:]]
    return body[1:] if isinstance(body, str) and body.startswith("!") else body


def learn_ids(answer: dict[str, Any], ids: dict[str, str]) -> None:
    """Remember the ids of the topics that an answer created."""
    for created in answer.get("topics", []):
        if created["errorCode"] == 0 and "topicId" in created:
            ids[created["name"]] = created["topicId"]


def ask(connection: BrokerConnection, step: Step, ids: dict[str, str]) -> dict[str, Any]:
    """Send one step and return the answer in its JSON form."""
    table = message_table(f"{step.api}Request")
    request = message_from_json(table, resolved(step.body, ids), step.version)
    kind = response_class(request.API_KEY)
    answer = connection.send(request, kind, version=step.version)
    form = message_to_json(answer, step.version)
    if not step.body.get("validateOnly"):
        learn_ids(form, ids)
    return form


def record(bootstrap: str, properties: dict[str, str]) -> None:
    """Ask everything in order and write the answers."""
    head = {
        "provenance": f"answers of Apache Kafka {RELEASE} to tests/controller/admin_steps.py",
        "properties": properties,
    }
    lines, ids = [json.dumps(head)], dict[str, str]()
    with BrokerConnection(bootstrap) as connection:
        for step in STEPS:
            if step.api == "DescribeConfigs":
                time.sleep(APPLIED_AFTER_S)
            lines.append(json.dumps(ask(connection, step, ids)))
    ANSWERS.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    with (
        tempfile.TemporaryDirectory() as directory,
        ApacheNode(Path(directory) / "node", overrides=OVERRIDES) as node,
    ):
        record(node.bootstrap, node.properties())
