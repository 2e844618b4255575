"""Which APIs the controller serves: key, inclusive versions, and the module that handles them.

Modules are imported when their API is first used, which keeps a node's start short.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Final, NamedTuple

from kraft_wire.controller.controller import Controller, ControllerContext, ControllerResult
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.message import Message

__all__ = ["API_TABLE", "ControllerApi", "Handle", "Refuse", "handler", "refuser"]

Handle = Callable[[Controller, ControllerContext, Message], ControllerResult]
Refuse = Callable[[Message, ErrorCode, str | None], Message]


class ControllerApi(NamedTuple):
    """One API of the controller."""

    api_key: int
    min_version: int
    max_version: int
    module: str


_ENTRIES: Final = (
    ControllerApi(19, 2, 7, "create_topics"),
    ControllerApi(20, 1, 6, "delete_topics"),
    ControllerApi(30, 1, 3, "create_acls"),
    ControllerApi(31, 1, 3, "delete_acls"),
    ControllerApi(33, 0, 2, "alter_configs"),
    ControllerApi(37, 0, 3, "create_partitions"),
    ControllerApi(43, 0, 2, "elect_leaders"),
    ControllerApi(44, 0, 1, "incremental_alter_configs"),
    ControllerApi(45, 0, 1, "alter_partition_reassignments"),
    ControllerApi(46, 0, 0, "list_partition_reassignments"),
    ControllerApi(49, 0, 1, "alter_client_quotas"),
    ControllerApi(51, 0, 0, "alter_user_scram_credentials"),
    ControllerApi(56, 2, 3, "alter_partition"),
    ControllerApi(57, 0, 2, "update_features"),
    ControllerApi(62, 0, 4, "broker_registration"),
    ControllerApi(63, 0, 2, "broker_heartbeat"),
    ControllerApi(64, 0, 0, "unregister_broker"),
    ControllerApi(67, 0, 0, "allocate_producer_ids"),
    ControllerApi(70, 0, 0, "controller_registration"),
    ControllerApi(73, 0, 0, "assign_replicas_to_dirs"),
)

API_TABLE: Final[dict[int, ControllerApi]] = {entry.api_key: entry for entry in _ENTRIES}

_loaded: dict[int, tuple[Handle, Refuse]] = {}


def handler(api_key: int) -> Handle:
    """Return the function that decides an API of `API_TABLE`, importing it on first use."""
    assert api_key in API_TABLE, api_key
    return _functions(api_key)[0]


def refuser(api_key: int) -> Refuse:
    """Return the function that refuses a request of an API as a whole."""
    assert api_key in API_TABLE, api_key
    return _functions(api_key)[1]


def _functions(api_key: int) -> tuple[Handle, Refuse]:
    found = _loaded.get(api_key)
    if found is None:
        module = import_module(f"kraft_wire.controller.{API_TABLE[api_key].module}")
        assert api_key == module.API_KEY, module
        found = _loaded[api_key] = module.handle, module.refuse
    return found
