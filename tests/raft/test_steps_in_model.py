"""Every step of a replica is one that the model of the quorum allows, and no other step passes.

Bugs are planted in the product, and each is found by the model alone: nothing else judges. In the
model too little is allowed, and runs of the product show it.
"""

from __future__ import annotations

from typing import Any

import pytest

from kraft_wire.model import Offset
from kraft_wire.raft import following, leading, polling, transitions
from kraft_wire.raft.divergence import Valid
from kraft_wire.raft.quorum import Quorum
from kraft_wire.raft.rpc import fetch, vote
from kraft_wire.raft.voters import VoterSet
from kraft_wire.sim.judge.model.reading import OtherVoters
from kraft_wire.sim.judge.model.watch import NotInModel
from kraft_wire.sim.quorum_model import rules
from tests.raft.swarm import Day

EVENTS = 600


def day(seed: int, **kind: bool) -> Day:
    """A day on which only the model judges."""
    found = Day(seed, EVENTS, **kind)
    found.cluster.holds_against_model = True
    found.cluster.judges = []
    return found


@pytest.mark.parametrize("kind", ["storm", "bad_disks", ""])
def test_steps_of_a_correct_replica_are_in_the_model(kind: str) -> None:
    steps = 0
    for seed in range(500, 505):
        one = day(seed, **({kind: True} if kind else {}))
        one.run()
        steps += one.cluster.steps_in_model
    assert steps > 3_000


def test_answer_that_comes_behind_its_failure_renews_nothing() -> None:
    """Seed 100743 was refused: the watch took a late answer for one that counts."""
    day(100743, bad_disks=True).run()


def highest(current: Offset | None, ends: Any, start: Offset) -> Offset | None:
    return max((end for end in ends if end is not None), default=current)


def keeps_its_vote(self: Quorum, asker: object, now_ms: int) -> None:
    """Answer that the vote is given, and forget to whom."""


BUGS: dict[str, tuple[object, str, object]] = {
    "everybody gets a vote": (vote, "grants_vote", lambda *counts: True),
    "everybody gets a pre-vote": (vote, "grants_pre_vote", lambda *counts: True),
    "nobody gets a vote": (vote, "grants_vote", lambda *counts: False),
    "a vote is not written down": (Quorum, "become_unattached_voted", keeps_its_vote),
    "half of the voters elect": (VoterSet, "majority", lambda self: max(1, len(self.nodes) // 2)),
    "one voter commits": (leading, "next_high_watermark", highest),
    "every log agrees": (fetch, "judge_fetch", lambda *counts: Valid()),
    "logs are cut at 0": (following, "truncation_point", lambda *counts: Offset(0)),
    "votes are asked for records in memory": (polling, "_is_log_durable", lambda *counts: True),
    "voters are not obeyed from their append on": (
        following,
        "take_control_record",
        lambda *counts: True,
    ),
    "no voter counts as heard": (leading, "note_contact", lambda *counts: None),
}


@pytest.mark.parametrize("name", BUGS)
def test_bug_in_the_product_is_found_by_the_model_alone(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(*BUGS[name])
    assert is_refused(range(40))


def is_refused(seeds: range) -> bool:
    """Whether the model refuses a step; what else breaks is not its doing."""
    for seed in seeds:
        for kind in ({}, {"bad_disks": True}, {"storm": True}):
            try:
                day(seed, **kind).run()
            except (NotInModel, OtherVoters):
                return True
            except Exception:  # noqa: BLE001  # the bug may break an assert first
                continue
    return False


TOO_STRICT: dict[str, tuple[str, object]] = {
    "no pre-vote is granted": ("_would_elect", lambda r: False),
    "no vote is granted": ("_grants", lambda r, m: False),
    "no voter set changes": ("may_change_voters", lambda r, voters: False),
    "no log is cut": ("_cut_point", lambda r, diverging: -1),
    "no log diverges": ("_compare", lambda r, at: (None, None)),
    "a leader never resigns": ("_lead", lambda r, due: iter(())),
}


@pytest.mark.parametrize("name", TOO_STRICT)
def test_model_that_allows_too_little_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, *TOO_STRICT[name])
    assert is_refused(range(10))


def test_every_role_of_the_product_is_a_role_of_the_model() -> None:
    roles = {role.__name__.lower() for role, _ in transitions.TRANSITIONS}
    assert roles == {"unattached", "prospective", "candidate", "follower", "leader", "resigned"}
