"""Handlers of the controller: the functions of an API, imported when it is first used.

That keeps the start short. `apis` lists the APIs; a handler's module under `controller` has the
base name of its generated module.
"""

from collections.abc import Callable
from importlib import import_module

from kraft_wire.apis.api import Owner
from kraft_wire.apis.registry import APIS
from kraft_wire.controller.controller import Controller, ControllerContext, ControllerResult
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.message import Message

__all__ = ["Handle", "Refuse", "handler", "refuser"]

Handle = Callable[[Controller, ControllerContext, Message], ControllerResult]
Refuse = Callable[[Message, ErrorCode, str | None], Message]

_loaded: dict[int, tuple[Handle, Refuse]] = {}


def handler(api_key: int) -> Handle:
    """Return the function that decides an API of the controller, importing it on first use."""
    return _functions(api_key)[0]


def refuser(api_key: int) -> Refuse:
    """Return the function that refuses a request of an API as a whole."""
    return _functions(api_key)[1]


def _functions(api_key: int) -> tuple[Handle, Refuse]:
    found = _loaded.get(api_key)
    if found is None:
        api = APIS[api_key]
        assert api.owner is Owner.CONTROLLER, api
        module = import_module(f"kraft_wire.controller.handlers.{api.module}")
        found = _loaded[api_key] = module.handle, module.refuse
    return found
