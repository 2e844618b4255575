"""Power lost in the middle of anything that a voter does to its disk: nothing committed is lost.

One of three whole nodes loses its power before the n-th change of its disk, for many n: elections,
appends, flushes, snapshots taken, fetched, installed and cleaned. It starts again and goes on.
"""

from collections.abc import Callable

import pytest

from kraft_wire.wire.generated.error_code import ErrorCode
from tests.node.quorum import NodeQuorum
from tests.node.test_three_controllers import configs, error_of, set_config

SETTINGS = {
    "metadata.log.max.record.bytes.between.snapshots": "1500",
    "metadata.max.retention.bytes": "100",
    "controller.quorum.fetch.snapshot.max.bytes": "300",
}


def insist(quorum: NodeQuorum, value: int) -> None:
    """Set the config until somebody says that it is done; whoever lost power starts again."""
    for _ in range(20):
        revive(quorum)
        if is_done(quorum, quorum.elect(), value):
            quorum.advance(10)
            return
    raise AssertionError("it was never committed")


def is_done(quorum: NodeQuorum, leader: int, value: int) -> bool:
    """Ask once; False where the leader says no or is gone."""
    answer = set_config(quorum, leader, value)
    quorum.until(lambda: answer.response is not None or quorum.members[leader].node is None)
    return answer.response is not None and error_of(answer) == ErrorCode.NONE


def revive(quorum: NodeQuorum, *, is_over: bool = False) -> None:
    for member in quorum.members.values():
        while member.node is None:
            if not is_over and member.power_lost == 1:  # and once more while it recovers
                quorum.lose_power_in(member.node_id, quorum.now_ms % 7)
            quorum.start(member.node_id)


def after_elections(quorum: NodeQuorum, victim: int, changes: int) -> None:
    """Appends, snapshots, cleaning, and an election."""
    quorum.lose_power_in(victim, changes)
    for value in range(12):
        insist(quorum, value)
    quorum.advance(61_000)
    revive(quorum)
    quorum.kill(quorum.elect())
    insist(quorum, 12)


def after_a_lost_disk(quorum: NodeQuorum, victim: int, changes: int) -> None:
    """A disk-less voter fetches a snapshot in chunks, and installs it."""
    for value in range(12):
        insist(quorum, value)
    quorum.advance(61_000)
    quorum.wipe(victim)
    quorum.lose_power_in(victim, changes)
    quorum.start(victim)
    insist(quorum, 12)
    quorum.advance(1_000)


@pytest.mark.parametrize("keeps_unsynced", [False, True])
@pytest.mark.parametrize(("scenario", "stride"), [(after_elections, 41), (after_a_lost_disk, 9)])
def test_power_lost_at_any_change_loses_nothing_committed(
    scenario: Callable[[NodeQuorum, int, int], None], stride: int, keeps_unsynced: bool
) -> None:
    lost = 0
    for changes in range(0, 10_000, stride):
        quorum = NodeQuorum(settings=SETTINGS)
        quorum.keeps_unsynced = keeps_unsynced
        quorum.elect()
        victim = 1 + changes % 3
        scenario(quorum, victim, changes)
        for member in quorum.members.values():
            member.fs.before_change = None
        revive(quorum, is_over=True)
        quorum.elect()
        assert configs(quorum) == ["12"] * 3, changes
        if not quorum.members[victim].power_lost:
            break
        lost += 1
    assert lost > 5, "the scenario changes the disk that often"
