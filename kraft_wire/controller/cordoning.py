"""Which changes of `cordoned.log.dirs` a controller accepts (KIP-1066), as release 4.3.1.

The value is a list of paths, and a controller knows the ids of a broker's directories only. So the
broker checks the paths and forwards the change; a change that comes past it may only remove some.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from kraft_wire.controller.refusal import Refusal
from kraft_wire.metadata.features import CORDONED_FROM
from kraft_wire.metadata.image import BROKER_RESOURCE, MetadataImage
from kraft_wire.settings.cordoning import CORDONED_KEY
from kraft_wire.settings.definition import CONTROLS_AND_BLANK
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["check_cordoned"]

_COMMA: Final = re.compile(r"\s*,\s*", re.ASCII)


def check_cordoned(
    image: MetadataImage,
    resource_type: int,
    present: Mapping[str, str],
    changes: Iterable[tuple[str, str | None]],
    *,
    is_direct: bool,
) -> None:
    """Refuse a change with INVALID_CONFIG, also a removal that the request does not name.

    `present` are the resource's values; `changes` are keys with their new values, None where one is
    removed. `is_direct`: no broker has checked the paths. First match wins: metadata.version is too
    low, a path is new.
    """
    if resource_type != BROKER_RESOURCE:
        return
    for key, value in changes:
        if key != CORDONED_KEY:
            continue
        assert image.metadata_version > 0, "settings are of a cluster that has begun"
        if image.metadata_version < CORDONED_FROM:
            words = (
                f"The {CORDONED_KEY} configuration value cannot be set because it requires "
                "metadata.version >= 4.3-IV0"
            )
            raise Refusal(ErrorCode.INVALID_CONFIG, words)
        if is_direct and _has_new_path(value, present.get(key)):
            words = (
                f"When updating {CORDONED_KEY} via controllers,  the new value must be a subset of "
                "the current configuration value."
            )
            raise Refusal(ErrorCode.INVALID_CONFIG, words)


def _has_new_path(value: str | None, present: str | None) -> bool:
    if value is None or not value.strip(CONTROLS_AND_BLANK):
        return False
    known = () if present is None else _members(present)
    return any(each not in known for each in _members(value))


def _members(text: str) -> list[str]:
    members = _COMMA.split(text.strip(CONTROLS_AND_BLANK))
    assert all("," not in each for each in members), members
    return members
