"""Why a broker cannot have the settings that a change would give it (KIP-226).

`DynamicBrokerConfig.validate`: 4.3.1 makes a whole configuration of it, so settings that limit
each other are checked as at the start, and then asks the pools of threads. Settings that are wrong
one by one are the controller's to refuse (`controller.config_rules`).
"""

from collections.abc import Mapping
from typing import Final

from kraft_wire.controller.config_rules import check_resource
from kraft_wire.controller.refusal import Refusal
from kraft_wire.metadata.image import BROKER_RESOURCE, MetadataImage
from kraft_wire.settings.joint_rules import joint_problem
from kraft_wire.settings.node_settings import NodeSettings

__all__ = ["joint_change_problem"]

_POOLS: Final = (
    *("num.io.threads", "num.replica.fetchers", "num.recovery.threads.per.data.dir"),
    *("background.threads", "num.network.threads"),
)
_CLEANER_THREADS: Final = "log.cleaner.threads"


def joint_change_problem(
    file: NodeSettings, image: MetadataImage, node_id: int, name: str, values: Mapping[str, str]
) -> str | None:
    """Return why broker `node_id` could not have all `values` of resource `name`, or None.

    `name` is the broker's id, or empty for the settings of all brokers; `file` has the settings of
    the broker's properties file.
    """
    all_brokers = image.config(BROKER_RESOURCE, "")
    own = image.config(BROKER_RESOURCE, str(node_id))
    before = file.with_dynamic(all_brokers, own)
    try:
        check_resource(BROKER_RESOURCE, name, values, before)
    except Refusal:
        return None
    after = file.with_dynamic(all_brokers, values) if name else file.with_dynamic(values, own)
    problem = joint_problem(after, is_broker=True)
    if problem is not None:
        return f"requirement failed: {problem.words}" if problem.is_requirement else problem.words
    return _pool_problem(before, after) or _cleaner_problem(before, after)


def _pool_problem(before: NodeSettings, after: NodeSettings) -> str | None:
    """`DynamicThreadPool.validateReconfiguration`: at most half or double at once."""
    for key in _POOLS:
        old, new = before.integer(key), after.integer(key)
        words = f"Dynamic thread count update validation failed for {key}={new}, value should "
        if new < old // 2:
            return f"{words}be at least half the current value {old}"
        if new > old * 2:
            return f"{words}not be greater than double the current value {old}"
    return None


def _cleaner_problem(before: NodeSettings, after: NodeSettings) -> str | None:
    """`LogCleaner.validateReconfiguration`."""
    old, new = before.integer(_CLEANER_THREADS), after.integer(_CLEANER_THREADS)
    words = "Log cleaner threads cannot be"
    if new < old // 2:
        return f"{words} reduced to less than half the current value {old}"
    return (
        f"{words} increased to more than double the current value {old}" if new > old * 2 else None
    )
