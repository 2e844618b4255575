"""The table of roles: every pair is allowed or refused; and what messages make of each role."""

import itertools

import pytest

from kraft_wire.model import LeaderEpoch
from kraft_wire.raft.effects import PersistElectionState, Reply
from kraft_wire.raft.events import ResignRequested
from kraft_wire.raft.roles import (
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    Role,
    Unattached,
)
from kraft_wire.raft.transitions import TRANSITIONS, Trigger, rule_for
from tests.raft.small import Small, begin_request, vote_request

ROLES: tuple[type[Role], ...] = (Unattached, Prospective, Candidate, Follower, Leader, Resigned)


def replica_in(role: type[Role]) -> Small:
    made = Small((1, 5))
    match role.__name__:
        case "Prospective":
            made.prospective()
        case "Candidate":
            made.candidate()
        case "Follower":
            made.follower()
        case "Leader":
            made.leader()
        case "Resigned":
            made.resigned()
    assert isinstance(made.role, role), made.role
    return made


@pytest.mark.parametrize(
    ("role", "trigger"),
    list(itertools.product(ROLES, Trigger)),
    ids=lambda one: getattr(one, "name", ""),
)
def test_pair_of_role_and_trigger_is_in_the_table_or_a_broken_invariant(
    role: type[Role], trigger: Trigger
) -> None:
    made = replica_in(role)
    if (role, trigger) in TRANSITIONS:
        rule = rule_for(made.role, trigger)
        assert set(rule.targets) <= set(ROLES)
    else:
        with pytest.raises(AssertionError):
            rule_for(made.role, trigger)


def test_every_role_can_be_left_and_reached() -> None:
    reached = {target for rule in TRANSITIONS.values() for target in rule.targets}
    assert reached == set(ROLES)
    assert {role for role, _ in TRANSITIONS} == set(ROLES)


@pytest.mark.parametrize("role", ROLES)
def test_higher_epoch_in_a_vote_leads_to_unattached_durably_before_the_answer(
    role: type[Role],
) -> None:
    made = replica_in(role)
    epoch = made.quorum.epoch + 5
    effects = made.ask(vote_request(epoch, last=(0, 0)))
    assert isinstance(made.role, Unattached)
    kinds = [type(effect) for effect in effects]
    assert kinds.index(PersistElectionState) < kinds.index(Reply)
    assert made.quorum.epoch == epoch


@pytest.mark.parametrize("role", ROLES)
def test_leader_of_a_higher_epoch_is_followed(role: type[Role]) -> None:
    made = replica_in(role)
    made.ask(begin_request(made.quorum.epoch + 1, 3))
    assert isinstance(made.role, Follower)
    assert made.quorum.leader_id == 3


@pytest.mark.parametrize("role", ROLES)
def test_message_of_an_older_epoch_changes_nothing(role: type[Role]) -> None:
    made = replica_in(role)
    before, epoch = made.role, made.quorum.epoch
    if epoch > 0:
        made.ask(begin_request(epoch - 1, 3))
        made.ask(vote_request(epoch - 1, 3, last=(0, 0)))
    assert made.role is before
    assert made.quorum.epoch == epoch


def test_resigned_leader_never_leads_the_same_epoch_again() -> None:
    made = replica_in(Resigned)
    epoch = made.quorum.epoch
    made.pass_ms(400)
    assert isinstance(made.role, Unattached | Prospective | Candidate)
    assert made.quorum.epoch == LeaderEpoch(epoch + 1)


def test_only_the_epoch_that_is_asked_to_resign_does() -> None:
    """RaftClient.resign: a request that comes late concerns an epoch that is over."""
    made = Small((1, 2)).established()
    for other in (-1, 1):
        made.step(ResignRequested(LeaderEpoch(made.quorum.epoch + other)))
        assert isinstance(made.role, Leader)
    made.step(ResignRequested(made.quorum.epoch))
    assert isinstance(made.role, Resigned)
    made.step(ResignRequested(made.quorum.epoch))
    assert isinstance(made.role, Resigned)
