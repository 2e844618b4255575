"""ListGroups: every group, by state and type."""

from __future__ import annotations

import pytest

from kraft_wire.wire.generated.list_groups import ListGroupsRequest
from tests.broker.groups.ready_groups import harness_with_groups


@pytest.mark.parametrize("version", range(6))
def test_list_shows_every_group_in_every_version(version: int) -> None:
    response = harness_with_groups().send(ListGroupsRequest(), version).response
    listed = sorted((g.group_id, g.protocol_type, g.group_state) for g in response.groups)
    states = ("Empty", "Stable") if version >= 4 else ("", "")
    assert listed == [("simple", "", states[0]), ("stable", "consumer", states[1])]
    assert {g.group_type for g in response.groups} == ({"classic"} if version >= 5 else {""})


@pytest.mark.parametrize(
    ("states", "types", "found"),
    [
        (["Stable"], [], ["stable"]),
        ([" eMPTY "], [], ["simple"]),
        (["nonsense"], [], []),
        ([], ["classic"], ["simple", "stable"]),
        ([], ["consumer"], []),
        (["Stable", "Empty"], ["Classic", "share"], ["simple", "stable"]),
    ],
)
def test_list_filters_by_state_and_type_without_regard_to_case(
    states: list[str], types: list[str], found: list[str]
) -> None:
    request = ListGroupsRequest(states_filter=states, types_filter=types)
    response = harness_with_groups().send(request, 5).response
    assert sorted(group.group_id for group in response.groups) == found
