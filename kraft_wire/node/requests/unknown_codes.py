"""Codes of 0 in requests about access-control entries (KIP-11, KIP-290): they are never valid.

Kafka's classes for these requests refuse a 0 while a request is being read, so it is never handled:
the connection is closed. The handlers refuse other unknown codes.
"""

from collections.abc import Iterator
from typing import Final

from kraft_wire.metadata.acl_rules import UNKNOWN
from kraft_wire.wire.generated.create_acls import CreateAclsRequest
from kraft_wire.wire.generated.delete_acls import DeleteAclsRequest
from kraft_wire.wire.generated.describe_acls import DescribeAclsRequest
from kraft_wire.wire.message import Message, Struct

__all__ = ["unknown_code"]

_CREATION: Final = ("resource_type", "resource_pattern_type", "operation", "permission_type")
_FILTER: Final = ("resource_type_filter", "pattern_type_filter", "operation", "permission_type")


def unknown_code(request: Message) -> str | None:
    """Return the path of the first field with a code of 0, None without one."""
    if isinstance(request, DescribeAclsRequest):
        return next(_zeros(request, _FILTER, ""), None)
    rows: list[Struct] = []
    names, place = _FILTER, "filters"
    if isinstance(request, CreateAclsRequest):
        rows, names, place = [*request.creations], _CREATION, "creations"
    elif isinstance(request, DeleteAclsRequest):
        rows = [*request.filters]
    for number, row in enumerate(rows):
        for path in _zeros(row, names, f"{place}[{number}]."):
            return path
    return None


def _zeros(row: Struct, names: tuple[str, ...], place: str) -> Iterator[str]:
    return (f"{place}{name}" for name in names if getattr(row, name) == UNKNOWN)
