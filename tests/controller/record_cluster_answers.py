"""Send the steps of `cluster_steps.py` to fresh Apache Kafka nodes and write the answers down.

    python -m tests.controller.record_cluster_answers [quotas] [scram] [acls] ...

Only when the steps change or another release is to be followed: the answers are committed.
"""

import json
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from kraft_wire.client import BrokerConnection, BrokerConnectionError
from tests.apache.jars import RELEASE
from tests.apache.node import ApacheNode
from tests.controller.admin_steps import Step
from tests.controller.cluster_steps import (
    ACL_STEPS,
    FEATURE_STEPS,
    NO_AUTHORIZER_STEPS,
    QUOTA_STEPS,
    SCRAM_STEPS,
)
from tests.controller.record_admin_answers import ask

OBSERVED = Path(__file__).parent / "observed"
AUTHORIZER: Final = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
STORIES: Final[Mapping[str, tuple[Sequence[Step], Mapping[str, str]]]] = {
    "quotas": (QUOTA_STEPS, {}),
    "scram": (SCRAM_STEPS, {}),
    "no_authorizer": (NO_AUTHORIZER_STEPS, {}),
    "acls": (ACL_STEPS, AUTHORIZER),
    "features": (FEATURE_STEPS, {}),
}
APPLIED_AFTER_S: Final = 0.3
"""A broker answers what is described from its own image, which follows a little later."""


class OldNode(ApacheNode):
    """A node formatted at the levels of release 3.9: metadata.version 21, no other feature."""

    format_options = ("--release-version", "3.9")


CLOSED: Final = {"closed": True}
"""What stands for an answer where the node ends the connection instead."""


def answers(bootstrap: str, steps: Sequence[Step]) -> Iterator[dict[str, Any]]:
    """Ask everything in order, on a new connection after one was closed."""
    connection = BrokerConnection(bootstrap)
    for step in steps:
        if step.api.startswith("Describe"):
            time.sleep(APPLIED_AFTER_S)
        try:
            yield ask(connection, step, {})
        except BrokerConnectionError:
            yield CLOSED
            connection.close()
            connection = BrokerConnection(bootstrap)
    connection.close()


def record(name: str) -> None:
    """Write the answers of one story."""
    steps, overrides = STORIES[name]
    kind = OldNode if name == "features" else ApacheNode
    with (
        tempfile.TemporaryDirectory() as directory,
        kind(Path(directory) / "node", overrides=overrides) as node,
    ):
        head = {"provenance": f"answers of Apache Kafka {RELEASE} to cluster_steps.py, {name}"}
        lines = [json.dumps(each) for each in [head, *answers(node.bootstrap, steps)]]
    (OBSERVED / f"{name}_answers.jsonl").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    for each in sys.argv[1:] or STORIES:
        record(each)
