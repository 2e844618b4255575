"""Settings of share groups: the broker's, one group's own, and the broker's limits."""

from __future__ import annotations

import pytest

from tests.broker.groups.consumer.test_group_settings import configure
from tests.broker.groups.test_share_group_heartbeat import (
    assigned,
    group_in,
    joining,
    send,
    sharing,
    with_topic,
)


@pytest.mark.parametrize(
    ("own", "effective"), [("50000", 50_000), ("1", 45_000), ("x", 45_000), ("70000", 60_000)]
)
def test_a_group_has_its_own_session_timeout_within_the_limits(own: str, effective: int) -> None:
    """932-FEAT-04, 932-FEAT-05: a stored value below the limit counts as the limit."""
    harness = with_topic()
    configure(harness, share_session_timeout_ms=own)
    send(harness, joining())
    harness.advance(effective - 1)
    assert not group_in(harness).is_empty
    harness.advance(1)
    assert group_in(harness).is_empty


@pytest.mark.parametrize(("own", "effective"), [("7000", 7_000), ("1", 5_000), ("99999", 15_000)])
def test_a_group_has_its_own_heartbeat_interval_within_the_limits(own: str, effective: int) -> None:
    """932-FEAT-04, 932-FEAT-05."""
    harness = with_topic()
    configure(harness, share_heartbeat_interval_ms=own)
    assert send(harness, joining()).response.heartbeat_interval_ms == effective


def test_the_groups_own_assignment_interval_wins() -> None:
    """932-HB-19, 932-FEAT-04: 0 is at once, though the broker's is a second."""
    harness = sharing("first", group_share_assignment_interval_ms=1_000)
    configure(harness, share_assignment_interval_ms="0")
    send(harness, joining(member_id="second"))
    assert assigned(send(harness, joining(member_id="second"))) == [1]
