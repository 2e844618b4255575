"""Changes of a broker's settings that others of its settings forbid (KIP-226).

`DynamicBrokerConfig.validate` of release 4.3.1; the words are its own.
"""

import pytest

from kraft_wire.metadata.image import BROKER_RESOURCE
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.node.quorum import NodeQuorum
from tests.node.test_log_directories import OURS, cluster

SET, DELETE = range(2)
OWN, ALL = str(OURS), ""
THREADS = "Dynamic thread count update validation failed for"


def change(quorum: NodeQuorum, name: str, *values: tuple[str, str | None]) -> str | None:
    """Set values, or delete those that are None; return why not."""
    configs = [
        AlterableConfig(name=key, config_operation=DELETE if value is None else SET, value=value)
        for key, value in values
    ]
    resource = AlterConfigsResource(
        resource_type=BROKER_RESOURCE, resource_name=name, configs=configs
    )
    answer = quorum.ask(
        OURS, IncrementalAlterConfigsRequest(resources=[resource]), 1, listener="PLAINTEXT"
    )
    quorum.until(lambda: answer.response is not None)
    (result,) = answer.response.responses
    assert (result.error_code == ErrorCode.NONE) == (result.error_message is None)
    assert result.error_code in (ErrorCode.NONE, ErrorCode.INVALID_REQUEST)
    quorum.level()
    message: str | None = result.error_message
    return message


@pytest.mark.parametrize("name", [ALL, OWN])
def test_settings_that_limit_each_other_are_checked_together(name: str) -> None:
    quorum = cluster()
    assert change(quorum, ALL, ("log.cleaner.min.compaction.lag.ms", "5")) is None
    for key, value, words in (
        (
            "log.cleaner.dedupe.buffer.size",
            "1048576",
            "requirement failed: log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner "
            "thread.",
        ),
        (
            "log.cleaner.max.compaction.lag.ms",
            "4",
            "conflict topic config setting min.compaction.lag.ms (5) > max.compaction.lag.ms (4)",
        ),
        (
            "max.connections.per.ip",
            "0",
            "requirement failed: max.connections.per.ip can be set to zero only if "
            "max.connections.per.ip.overrides property is set.",
        ),
    ):
        assert change(quorum, name, (key, value)) == words
    lags = ("log.cleaner.min.compaction.lag.ms", "4"), ("log.cleaner.max.compaction.lag.ms", "4")
    assert change(quorum, name, *lags) is None
    buffer = ("log.cleaner.dedupe.buffer.size", "2097154")
    assert change(quorum, name, buffer, ("log.cleaner.threads", "2")) is None


@pytest.mark.parametrize("name", [ALL, OWN])
def test_pools_of_threads_are_at_most_halved_or_doubled(name: str) -> None:
    """`DynamicThreadPool` and `LogCleaner`, which has other words."""
    quorum = cluster()
    for key, value, words in (
        ("num.io.threads", "3", "at least half the current value 8"),
        ("num.io.threads", "17", "not be greater than double the current value 8"),
        ("num.network.threads", "7", "not be greater than double the current value 3"),
        ("background.threads", "4", "at least half the current value 10"),
    ):
        refused = change(quorum, name, (key, value))
        assert refused is not None
        assert refused.startswith(f"{THREADS} {key}={value}, value should ")
        assert refused.endswith(words)
    for value in ("4", "8", "16"):
        assert change(quorum, name, ("num.io.threads", value)) is None
    words = "Log cleaner threads cannot be"
    assert change(quorum, name, ("log.cleaner.threads", "3")) == (
        f"{words} increased to more than double the current value 1"
    )
    for value in ("2", "4"):
        assert change(quorum, name, ("log.cleaner.threads", value)) is None
    assert change(quorum, name, ("log.cleaner.threads", "1")) == (
        f"{words} reduced to less than half the current value 4"
    )


def test_what_a_broker_has_itself_hides_what_all_brokers_have() -> None:
    quorum = cluster()
    assert change(quorum, OWN, ("num.io.threads", "16")) is None
    assert change(quorum, ALL, ("num.io.threads", "100")) is None
    assert change(quorum, OWN, ("num.io.threads", None)) is not None


def test_a_value_that_is_wrong_alone_is_refused_for_that() -> None:
    words = "Invalid value 0 for configuration num.io.threads: Value must be at least 1"
    changes = ("log.cleaner.dedupe.buffer.size", "1"), ("num.io.threads", "0")
    assert change(cluster(), OWN, *changes) == words
