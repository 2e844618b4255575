"""Rules of single cases that no real broker breaks, on answers made by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from kraft_wire.conformance.cases.acls import _needs_none
from kraft_wire.conformance.cases.api_versions import features_are_proper
from kraft_wire.conformance.cases.describe_cluster import operations_of_the_cluster
from kraft_wire.conformance.subject import Subject
from kraft_wire.conformance.verdict import Mismatch, NotSupported
from kraft_wire.wire.generated.api_versions import (
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from kraft_wire.wire.generated.describe_acls import DescribeAclsResponse
from kraft_wire.wire.generated.describe_cluster import DescribeClusterResponse
from kraft_wire.wire.generated.error_code import ErrorCode as E
from kraft_wire.wire.message import Message


def subject(answer: Message) -> Subject:
    """A broker with one answer to everything."""
    made = SimpleNamespace(name=lambda: "t", ask=lambda *_: answer, prepare=lambda *_, **__: answer)
    return cast(Subject, made)


def test_cases_without_an_authorizer_do_not_apply_to_a_broker_that_has_one() -> None:
    refused = DescribeAclsResponse(error_code=E.SECURITY_DISABLED)
    assert _needs_none(subject(refused)) == "t"
    with pytest.raises(NotSupported):
        _needs_none(subject(DescribeAclsResponse()))


def judged(version: int, first: int, last: int, final: int) -> Mismatch | None:
    """Return the mismatch that the case finds for a feature with these levels."""
    supported = SupportedFeatureKey(name="f", min_version=first, max_version=last)
    finalized = FinalizedFeatureKey(name="f", max_version_level=final, min_version_level=final)
    answer = ApiVersionsResponse(
        supported_features=cast(Any, [supported]), finalized_features=cast(Any, [finalized])
    )
    try:
        cast(Any, features_are_proper)(subject(answer), version)
    except Mismatch as found:
        return found
    return None


@pytest.mark.parametrize(
    ("version", "first", "last", "final", "path"),
    [
        (3, 1, 1, 1, None),
        (3, 1, 4, 4, None),
        (3, 0, 4, 1, "supported_features[0].max_version"),
        (4, 0, 0, 0, None),
        (4, 0, 4, 0, None),
        (4, -1, 4, 1, "supported_features[0].max_version"),
        (4, 3, 2, 2, "supported_features[0].max_version"),
        (4, 1, 4, 5, "finalized_features[0].max_version_level"),
        (4, 2, 4, 1, "finalized_features[0].max_version_level"),
    ],
)
def test_levels_of_a_feature_at_their_bounds(
    version: int, first: int, last: int, final: int, path: str | None
) -> None:
    found = judged(version, first, last, final)
    assert (found and found.path) == path


@pytest.mark.parametrize("gives", [True, False])
def test_operations_that_are_missing_or_not_asked_for_are_told_apart(gives: bool) -> None:
    answer = DescribeClusterResponse(cluster_authorized_operations=8 if gives else -(2**31))
    with pytest.raises(Mismatch) as found:
        cast(Any, operations_of_the_cluster)(subject(answer), 1)
    wanted = "none" if gives else "operations"
    assert (found.value.expected, found.value.path) == (wanted, "cluster_authorized_operations")
