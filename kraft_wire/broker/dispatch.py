"""Handlers of the broker: the function that answers an API, imported when it is first used.

That keeps the start short. `apis` lists the APIs; a handler's module under `broker/handlers` has
the base name of its generated module.
"""

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Final, TypeAlias

from kraft_wire.apis.api import Owner
from kraft_wire.apis.registry import APIS
from kraft_wire.broker.context import RequestContext, Withheld
from kraft_wire.wire.message import Message

if TYPE_CHECKING:
    from kraft_wire.broker.broker import Broker

__all__ = ["Handle", "handler"]

Handle: TypeAlias = "Callable[[Broker, RequestContext, Message], Message | Withheld]"


class _Handlers(dict[int, Handle]):
    """The handlers that were used."""

    def __missing__(self, api_key: int) -> Handle:
        api = APIS[api_key]
        assert api.owner is Owner.BROKER, api
        found: Handle = import_module(f"kraft_wire.broker.handlers.{api.module}").handle
        self[api_key] = found
        return found


handler: Final[Callable[[int], Handle]] = _Handlers().__getitem__
"""Returns the function that answers an API of the broker, importing it on first use."""
