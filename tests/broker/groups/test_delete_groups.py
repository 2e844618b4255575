"""DeleteGroups: empty groups only, and none that the log still has."""

from __future__ import annotations

import pytest

from kraft_wire.wire.generated.delete_groups import DeleteGroupsRequest
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.list_groups import ListGroupsRequest
from tests.broker.groups.harness import Harness
from tests.broker.groups.ready_groups import (
    begin_loading,
    harness_with_groups,
    lose_coordination,
    stable_member,
)
from tests.broker.groups.requests import committed


@pytest.mark.parametrize("version", range(3))
def test_delete_removes_empty_groups_and_refuses_others(version: int) -> None:
    harness = harness_with_groups()
    request = DeleteGroupsRequest(groups_names=["stable", "simple", "none", "simple"])
    response = harness.send(request, version).response
    assert [(result.group_id, result.error_code) for result in response.results] == [
        ("stable", ErrorCode.NON_EMPTY_GROUP),
        ("simple", ErrorCode.NONE),
        ("none", ErrorCode.GROUP_ID_NOT_FOUND),
    ]
    assert committed(harness, "simple") == {}
    again = harness.restart(offsets_partitions=5)
    listed = again.send(ListGroupsRequest(), 5).response.groups
    assert [group.group_id for group in listed] == ["stable"]


def test_delete_that_cannot_be_stored_leaves_the_group() -> None:
    harness = harness_with_groups()
    harness.store.refusals = [ErrorCode.NOT_ENOUGH_REPLICAS]
    request = DeleteGroupsRequest(groups_names=["simple"])
    response = harness.send(request, 2).response
    assert response.results[0].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert committed(harness, "simple") == {("topic", 0): 1}


def test_errors_in_order() -> None:
    harness = Harness()

    def error() -> int:
        response = harness.send(DeleteGroupsRequest(groups_names=["group"]), 2).response
        return int(response.results[0].error_code)

    lose_coordination(harness)
    assert error() == ErrorCode.NOT_COORDINATOR
    begin_loading(harness)
    assert error() == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    harness.settle()
    assert error() == ErrorCode.GROUP_ID_NOT_FOUND
    stable_member(harness)
    assert error() == ErrorCode.NON_EMPTY_GROUP
