"""The server assignors by their names."""

from collections.abc import Mapping
from typing import Final

from kraft_wire.broker.groups.assignors import range as range_assignor
from kraft_wire.broker.groups.assignors import uniform
from kraft_wire.broker.groups.assignors.spec import Assignor
from kraft_wire.settings.server_assignors import RANGE, UNIFORM

__all__ = ["ASSIGNORS"]

ASSIGNORS: Final[Mapping[str, Assignor]] = {
    UNIFORM: uniform.assign,
    RANGE: range_assignor.assign,
}
