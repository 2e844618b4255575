"""The model of the quorum: every state within small bounds is safe, and planted bugs are found.

Each planted bug drops or bends one rule of the model, on a copy of its source. The exploration of a
small scope has to refute it by an invariant of the model.
"""

from __future__ import annotations

import inspect
from typing import NamedTuple

import pytest

from kraft_wire.sim.quorum_model import rules
from kraft_wire.sim.quorum_model.electing import LeaderElectable
from kraft_wire.sim.quorum_model.exploration import Found, explore, walk
from kraft_wire.sim.quorum_model.world import Scope

ELECTION = Scope(epochs=1, appends=0, crashes=1, in_flight=1, has_pre_votes=False)
SUCCESSION = Scope(start="led", epochs=2, appends=1, crashes=1, in_flight=1, has_pre_votes=False)
MEMBERSHIP = Scope(
    voters=(2, 3), start="led", epochs=1, appends=0, crashes=0, wipes=1, changes=1, in_flight=1
)
SPLIT = Scope(start="split", epochs=4, appends=0, crashes=0, in_flight=1, has_pre_votes=False)
SNAPSHOTS = Scope(
    voters=(1, 2),
    start="led",
    epochs=1,
    appends=1,
    crashes=0,
    snapshots=1,
    in_flight=1,
    has_pre_votes=False,
)


class Planted(NamedTuple):
    """One bug: `old` stands once in the source of the rules."""

    old: str
    new: str
    scope: Scope
    found_by: tuple[str, ...]


BUGS = {
    "a vote is given without a look at the log": Planted(
        "return r.leader == NOBODY and m.last >= r.log.last",
        "return r.leader == NOBODY",
        SUCCESSION._replace(crashes=0),
        ("LeaderCompleteness",),
    ),
    "two votes in one epoch": Planted(
        "        return matches(r.voted, m.source)\n    return r.leader",
        "        return True\n    return r.leader",
        ELECTION,
        ("OneVotePerEpoch", "SingleLeaderPerEpoch"),
    ),
    "a vote is forgotten with the role": Planted(
        "voted = r.voted if epoch == r.epoch else None",
        "voted = None",
        ELECTION,
        ("OneVotePerEpoch",),
    ),
    "half of the voters elect": Planted(
        "has_won = len(r.granted & ids) >= r.majority",
        "has_won = len(r.granted & ids) >= r.majority - 1",
        ELECTION,
        ("SingleLeaderPerEpoch",),
    ),
    "a leader leads on after a restart": Planted(
        '        yield _enter(r, "resigned", r.epoch, r.leader)\n    elif',
        '        yield _enter(r, "leader", r.epoch, r.leader)\n    elif',
        SUCCESSION,
        ("LogMatching",),
    ),
    "the high watermark is one voter ahead": Planted(
        "sorted(ends, reverse=True)[len(ends) // 2]",
        "sorted(ends, reverse=True)[0]",
        SUCCESSION,
        ("LeaderCompleteness", "CommittedIsForever"),
    ),
    "a record of an older epoch is committed by counting": Planted(
        "if reached > max(r.first, r.commits):",
        "if reached > max(1, r.commits):",
        SPLIT._replace(batch=1),
        ("LeaderCompleteness", "CommittedIsForever"),
    ),
    "a fetch acknowledges what is not on the disk": Planted(
        "if is_on_disk and (r.wanted is None or r.is_overdue):",
        "if r.wanted is None or r.is_overdue:",
        SUCCESSION,
        ("LeaderCompleteness", "CommittedIsForever"),
    ),
    "a candidate names what is not on its disk": Planted(
        "if is_pre or is_on_disk:",
        "if True:",
        SUCCESSION._replace(start="ahead", appends=0),
        ("LeaderCompleteness",),
    ),
    "a vote is forgotten over a restart": Planted(
        "r = r._replace(watermark=0, has_ended=False)",
        "r = r._replace(watermark=0, has_ended=False, voted=None)",
        ELECTION,
        ("SingleLeaderPerEpoch",),
    ),
    "logs are compared by their length": Planted(
        "is_same = end.epoch == at.epoch and at.offset <= end.offset",
        "is_same = at.offset <= log.last.offset",
        SPLIT,
        ("LogMatching",),
    ),
    "the leader's high watermark is taken before the logs agree": Planted(
        "    if m.diverging is not None:\n",
        "    if m.diverging is not None:\n"
        "        r = r._replace(leader_high_watermark=m.watermark)\n",
        SPLIT,
        ("CommittedReadOnly",),
    ),
    "a late answer to a fetch is obeyed": Planted(
        "if m.epoch <= r.epoch and is_current and m.asked == now.log.last:",
        "if m.epoch <= r.epoch and is_current:",
        SUCCESSION._replace(epochs=1, crashes=0, appends=2, in_flight=2),
        ("LogMatching", "CommittedReadOnly"),
    ),
    "a voter set follows one that is not committed": Planted(
        "return r.log.voters_offset < r.commits and",
        "return",
        MEMBERSHIP._replace(changes=2),
        ("OneVoterChange",),
    ),
    "an observer campaigns": Planted(
        'if r.is_voter and (r.role == "unattached" or r.is_only_voter):',
        'if r.role == "unattached" or r.is_only_voter:',
        MEMBERSHIP,
        ("OnlyVotersCampaign",),
    ),
    "a replica without records is sent those behind a snapshot": Planted(
        "if at.offset == 0 or is_below or is_other:",
        "if is_other:",
        SNAPSHOTS,
        ("LogMatching",),
    ),
    "an observer never gives its leader up": Planted(
        "return not r.has_fetched or r.is_overdue",
        "return not r.has_fetched",
        MEMBERSHIP,
        ("LeaderElectable",),
    ),
    "nobody grants pre-votes": Planted(
        'return r.role != "leader"',
        "return False",
        MEMBERSHIP,
        ("LeaderElectable",),
    ),
}


def plant(bug: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    source = inspect.getsource(rules)
    assert source.count(bug.old) == 1, bug.old
    bent: dict[str, object] = {"__name__": rules.__name__}
    exec(compile(source.replace(bug.old, bug.new), "bent rules", "exec"), bent)
    for name in rules.__all__:
        monkeypatch.setattr(rules, name, bent[name])


@pytest.mark.parametrize("name", BUGS)
def test_planted_bug_in_the_model_is_refuted(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bug = BUGS[name]
    plant(bug, monkeypatch)
    judge = LeaderElectable() if bug.scope.has_pre_votes else None
    with pytest.raises(Found) as found:
        explore(bug.scope, 400_000, judge)
    assert found.value.invariant in bug.found_by


def test_model_is_safe_in_every_state_of_one_election() -> None:
    explored = explore(ELECTION)
    assert explored.is_complete
    assert explored.states > 5_000


def test_leader_is_electable_in_the_first_states_of_a_voter_change_and_a_lost_disk() -> None:
    judge = LeaderElectable()
    explored = explore(MEMBERSHIP, 20_000, judge)
    assert explored.states > 20_000
    assert judge.asked > 8_000


def test_model_is_safe_along_random_walks_of_five_voters() -> None:
    scope = Scope(
        replicas=5,
        voters=(1, 2, 3, 4, 5),
        epochs=9,
        appends=5,
        crashes=4,
        changes=2,
        snapshots=2,
        in_flight=6,
    )
    assert walk(scope, 1, 3_000).steps == 3_000
