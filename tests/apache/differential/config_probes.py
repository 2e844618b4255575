"""DescribeConfigs 1 to 4, AlterConfigs 0 to 2, IncrementalAlterConfigs 0 to 1, ListConfigResources.

The values and defaults of every key are compared by `tests/controller/test_admin_answers.py` and
`tests/settings/`; here it is the shape of each version's answers, on topics of the probe's own.
"""

from typing import Any

from kraft_wire.wire.generated.alter_configs import (
    AlterableConfig as ReplacedConfig,
)
from kraft_wire.wire.generated.alter_configs import (
    AlterConfigsRequest,
)
from kraft_wire.wire.generated.alter_configs import (
    AlterConfigsResource as ReplacedResource,
)
from kraft_wire.wire.generated.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from kraft_wire.wire.generated.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraft_wire.wire.generated.list_config_resources import ListConfigResourcesRequest
from tests.apache.differential.probes import probe
from tests.apache.differential.side import Side

TOPIC, BROKER, METRICS, GROUP = 2, 4, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
KEYS = ["cleanup.policy", "retention.ms", "max.message.bytes", "segment.bytes", "no.such"]
BROKER_KEYS = ["num.partitions", "log.retention.ms", "log.segment.bytes", "node.id", "no.such"]


@probe(DescribeConfigsRequest)
def descriptions(side: Side, version: int) -> None:
    plain, set_up = side.topic("configs"), side.topic("configs-set", retention_ms="77")

    def ask(question: str, *asked: tuple[int, str, list[str] | None], **flags: Any) -> None:
        resources = [
            DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
            for kind, name, keys in asked
        ]
        side.ask(DescribeConfigsRequest(resources=resources, **flags), version, question)

    for synonyms in (False, True):
        flags: dict[str, Any] = {"include_synonyms": synonyms}
        ask("some", (TOPIC, plain, KEYS), **flags)
        ask("some that are set", (TOPIC, set_up, KEYS), **flags)
        ask("of a broker", (BROKER, "1", BROKER_KEYS), **flags)
        ask("of all brokers", (BROKER, "", BROKER_KEYS), **flags)
    ask("all of a topic", (TOPIC, set_up, None))
    ask("none", (TOPIC, plain, []))
    ask("twice", (TOPIC, plain, ["retention.ms"]), (TOPIC, plain, ["retention.ms"]))
    ask("unknown topic", (TOPIC, side.name("nowhere"), None))
    ask("no name", (TOPIC, "", None))
    ask("a wrong name", (TOPIC, "a b", None))
    for broker in ("7", "x", "-1", "1.0"):
        ask(f"broker {broker}", (BROKER, broker, None))
    for kind in (0, 1, 3, 64, 99, -1):
        ask(f"kind {kind}", (kind, "x", None))
    ask("a group", (GROUP, "g", ["consumer.session.timeout.ms"]))
    ask("no group", (GROUP, "", None))
    ask("metrics", (METRICS, "m", None))
    ask("no metrics", (METRICS, "", None))
    ask("nothing")


@probe(AlterConfigsRequest)
def replacements(side: Side, version: int) -> None:
    name = side.topic(f"replace-{version}", segment_ms="5000")

    def ask(question: str, kind: int, which: str, dry: bool = False, **values: Any) -> None:
        configs = [
            ReplacedConfig(name=key.replace("_", "."), value=value) for key, value in values.items()
        ]
        resource = ReplacedResource(resource_type=kind, resource_name=which, configs=configs)
        request = AlterConfigsRequest(resources=[resource], validate_only=dry)
        side.ask(request, version, question)

    ask("only tried", TOPIC, name, dry=True, retention_ms="9")
    ask("one key", TOPIC, name, retention_ms="9")
    ask("a wrong value", TOPIC, name, retention_ms="soon")
    ask("no value", TOPIC, name, retention_ms=None)
    ask("an unknown key", TOPIC, name, no_such="1")
    ask("nothing", TOPIC, name)
    ask("an unknown topic", TOPIC, side.name("nowhere"), retention_ms="9")
    ask("no topic", TOPIC, "", retention_ms="9")
    ask("a wrong name", TOPIC, "a b", retention_ms="9")
    ask("another broker", BROKER, "7", log_cleaner_threads="1")
    ask("no number", BROKER, "x", log_cleaner_threads="1")
    ask("a fixed key", BROKER, "1", num_partitions="1")
    ask("unknown kind", 99, "x", a="1")
    side.ask(AlterConfigsRequest(resources=[]), version, "no resources")


@probe(IncrementalAlterConfigsRequest)
def changes(side: Side, version: int) -> None:
    name = side.topic(f"change-{version}")

    def ask(
        question: str,
        kind: int,
        which: str,
        *operations: tuple[str, int, str | None],
        dry: bool = False,
    ) -> None:
        configs = [
            AlterableConfig(name=key, config_operation=operation, value=value)
            for key, operation, value in operations
        ]
        resource = AlterConfigsResource(resource_type=kind, resource_name=which, configs=configs)
        request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=dry)
        side.ask(request, version, question)

    ask("set", TOPIC, name, ("retention.ms", SET, "9"))
    ask("only tried", TOPIC, name, ("retention.ms", SET, "10"), dry=True)
    ask("delete", TOPIC, name, ("retention.ms", DELETE, None))
    ask("append", TOPIC, name, ("cleanup.policy", APPEND, "compact"))
    ask("subtract", TOPIC, name, ("cleanup.policy", SUBTRACT, "delete"))
    ask("append to no list", TOPIC, name, ("retention.ms", APPEND, "9"))
    ask("set nothing", TOPIC, name, ("retention.ms", SET, None))
    ask("a wrong value", TOPIC, name, ("retention.ms", SET, "soon"))
    ask("an unknown key", TOPIC, name, ("no.such", SET, "1"))
    ask("twice", TOPIC, name, ("retention.ms", SET, "1"), ("retention.ms", SET, "2"))
    ask("nothing", TOPIC, name)
    ask("unknown topic", TOPIC, side.name("nowhere"), ("retention.ms", SET, "9"))
    ask("no topic", TOPIC, "", ("retention.ms", SET, "9"))
    ask("another broker", BROKER, "7", ("log.cleaner.threads", SET, "1"))
    ask("a fixed key", BROKER, "1", ("num.partitions", SET, "2"))
    ask("unknown kind", 99, "x", ("a", SET, "1"))
    ask("metrics", METRICS, side.name("m"), ("interval.ms", SET, "1"))
    ask("a group", GROUP, side.name("g"), ("consumer.session.timeout.ms", SET, "1"))
    side.ask(IncrementalAlterConfigsRequest(resources=[]), version, "no resources")


@probe(ListConfigResourcesRequest)
def resources(side: Side, version: int) -> None:
    name = side.topic("configs")
    for kinds in ([], [TOPIC], [BROKER], [8], [METRICS], [TOPIC, BROKER], [99], [0], [TOPIC, 99]):
        if kinds and not version:
            continue
        request = ListConfigResourcesRequest(resource_types=kinds)
        answer = side.prepare(request, version)
        mine = [
            (each.resource_name, each.resource_type)
            for each in answer.config_resources
            if each.resource_name == name or each.resource_type not in (TOPIC, METRICS, GROUP)
        ]
        side.note(f"{kinds}", [answer.error_code, mine], hashed=True)
