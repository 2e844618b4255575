"""Changes of `cordoned.log.dirs` at a controller, as `ConfigurationControlManagerTest` of 4.3.1.

A broker checks the paths of a change that it forwards. A change sent to a controller is unchecked.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from kraft_wire.controller.cordoning import check_cordoned
from kraft_wire.controller.refusal import Refusal
from kraft_wire.metadata.features import METADATA_VERSION
from kraft_wire.metadata.image import BROKER_RESOURCE, EMPTY_IMAGE, TOPIC_RESOURCE, MetadataImage
from kraft_wire.wire.generated.error_code import ErrorCode

KEY = "cordoned.log.dirs"
TOO_LOW = (
    "The cordoned.log.dirs configuration value cannot be set because it requires "
    "metadata.version >= 4.3-IV0"
)
NEW = (
    "When updating cordoned.log.dirs via controllers,  the new value must be a subset of the "
    "current configuration value."
)


def image(level: int = 30) -> MetadataImage:
    return replace(EMPTY_IMAGE, finalized_features={METADATA_VERSION: level})


def refusal(
    value: str | None,
    present: str | None = None,
    *,
    is_direct: bool = True,
    level: int = 30,
    kind: int = BROKER_RESOURCE,
) -> str | None:
    """Return the message of the refusal, None if the change is accepted."""
    known = {} if present is None else {KEY: present}
    changes = [("log.cleaner.threads", "2"), (KEY, value)]
    try:
        check_cordoned(image(level), kind, known, changes, is_direct=is_direct)
    except Refusal as refused:
        return refused.message if refused.error is ErrorCode.INVALID_CONFIG else str(refused.error)
    return None


@pytest.mark.parametrize("level", [22, 29, 30])
def test_level_must_have_cordoned_directories_even_for_a_removal(level: int) -> None:
    for value, is_direct in (("", True), ("", False), (None, True), (None, False), ("*", False)):
        expected = None if level == 30 else TOO_LOW
        assert refusal(value, is_direct=is_direct, level=level) == expected, value
    assert refusal("*", level=level) == (NEW if level == 30 else TOO_LOW)
    assert refusal("*", level=level, kind=TOPIC_RESOURCE) is None, "no topic has this key"


@pytest.mark.parametrize("value", ["", "   ", " \t\n", None])
@pytest.mark.parametrize("present", [None, "", "some/value"])
def test_all_directories_may_always_be_removed(value: str | None, present: str | None) -> None:
    assert refusal(value, present) is None
    assert refusal(value, present, is_direct=False) is None


@pytest.mark.parametrize("value", ["dir1", "dir2", "dir1,dir2", "dir2,dir1", " dir2 , dir1 "])
def test_part_of_the_present_value_is_accepted(value: str) -> None:
    assert refusal(value, "dir1,dir2") is None
    assert refusal(value, " dir1\t,  dir2 ") is None
    assert refusal(value, "dir1,dir2", is_direct=False) is None


@pytest.mark.parametrize(
    ("value", "present"),
    [("dir2", "dir1"), ("dir1,dir2", "dir1"), ("dir1", ""), ("dir1", None), ("*", "dir1")],
)
def test_new_path_is_accepted_only_if_a_broker_has_checked_it(
    value: str, present: str | None
) -> None:
    assert refusal(value, present) == NEW
    assert refusal(value, present, is_direct=False) is None
