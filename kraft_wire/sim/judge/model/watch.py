"""Compares every step of a production replica with the model, which must allow it.

A watch is between a host and its `RaftReplica`. It reads the replica before and after a step as a
state of the model (`reading`), and takes the allowed results of the event from the rules. The
replica's state and messages must be among them. The replica's own actions in the same step
(campaign, win, commit, resign) are further steps of the model, each with its guard.

The model has no clock. Here two timeouts have one: a follower may time out only once the fetch
timeout has passed since its leader's last answer, and a leader may resign only once the
check-quorum time has passed since a majority fetched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kraft_wire.raft.effects import (
    Effect,
    PersistElectionState,
    Reply,
    ReplyWithRecords,
    ReplyWithSnapshotSlice,
    SendRequest,
)
from kraft_wire.raft.events import (
    AppendRequested,
    Event,
    LogFlushed,
    RecordsAppended,
    RequestFailed,
    RequestReceived,
    ResignRequested,
    ResponseReceived,
    ShutdownRequested,
    SnapshotInstalled,
    SnapshotRefused,
    Started,
    TimerFired,
)
from kraft_wire.raft.replica import RaftReplica
from kraft_wire.sim.judge.model import messages
from kraft_wire.sim.judge.model.reading import OtherVoters, Reading
from kraft_wire.sim.quorum_model import rules
from kraft_wire.sim.quorum_model.states import (
    Answer,
    Append,
    Change,
    End,
    Fetch,
    Fetched,
    FetchedSnapshot,
    FetchSnapshot,
    Key,
    Message,
    Replica,
    Step,
    Take,
    Vote,
    Voted,
    Voters,
    is_member,
    matches,
)

__all__ = ["ModelWatch", "NotInModel"]

_STEPS_MAX = 7
"""The maximum of a replica's own actions in one step: from resigned to leader there are five."""
_AGES_MS = 1 << 60
_EVENTLESS = (TimerFired, LogFlushed, RecordsAppended, RequestFailed)
"""Events that may have no effect, and that do not count for timeouts."""
_Answered = Reply | ReplyWithRecords | ReplyWithSnapshotSlice


class NotInModel(Exception):
    """A step of a replica that the model does not allow."""


class ModelWatch:
    """Watches one replica of one process; `intercept_steps` inserts it."""

    def __init__(
        self,
        replica: RaftReplica,
        passed: Callable[[], None],
        refused: Callable[[str], Exception] = NotInModel,
    ) -> None:
        """`passed` is called for every step that is allowed, `refused` makes the error."""
        self._replica = replica
        self._take: Callable[[Event, int], list[Effect]] = replica.step
        self._passed, self._refused = passed, refused
        self._reading = Reading(replica.quorum)
        self._state = self._reading.state()
        self._asked: dict[int, tuple[Message, object, int]] = {}
        """Requests by id, with the role that asked and the time at which it gives up."""
        self._parked: dict[int, tuple[object, Fetch]] = {}
        timing = replica.quorum.config.timing
        self._fetch_timeout_ms = timing.fetch_timeout_ms
        self._check_quorum_ms = timing.check_quorum_timeout_ms
        self._leader_answered_ms = replica.stepped_ms
        """Follower: when its leader answered last."""
        self._role: object = replica.quorum.role
        self._period_ms = replica.stepped_ms
        """Leader: when a majority had fetched last."""
        self._fetched_from: set[int] = set()
        self._is_stopping = False
        self._may_resign = False
        for sent in replica.quorum.peers.outstanding():
            self._remember(sent, self._state.key)

    def intercept_steps(self) -> None:
        """Have every further step of the replica checked; the error is raised out of `step`."""
        self._replica.step = self.step  # type: ignore[method-assign]  # a watch on one object only

    def step(self, event: Event, now_ms: int) -> list[Effect]:
        """Let the replica take the step, and judge it before its effects are performed."""
        effects = self._take(event, now_ms)
        try:
            self._judge(event, effects, now_ms)
        except (NotInModel, OtherVoters) as refusal:
            raise self._refused(str(refusal)) from refusal
        self._passed()
        return effects

    # -- one step --------------------------------------------------------------------------------

    def _judge(self, event: Event, effects: list[Effect], now_ms: int) -> None:
        reading, before = self._reading, self._state
        reading.apply_event(event)
        if before.log is not reading.log():
            before = before._replace(log=reading.log())
        after = reading.state()
        if not effects and after == before and type(event) in _EVENTLESS:
            return  # it had no effect
        change = messages.change_of(effects) if effects else None
        received, steps = self._allowed(event, before, change, now_ms)
        answer = self._answer_now(event, received, effects)
        matched = self._match(steps, after, change, answer, now_ms)
        if matched is None:
            raise NotInModel(self._story(event, received, before, after, change, answer))
        self._judge_parked(event, received, answer, matched, after)
        reading.apply_effects(effects)
        if after.log is not reading.log():
            after = after._replace(log=reading.log())
        self._state = after
        self._judge_messages(event, received, effects, before, after)
        contact = messages.contact_in(event, received, answer or matched.answer, effects)
        self._note_time(received, contact, before, now_ms)

    def _story(self, event: Event | None, received: Message | None, *facts: object) -> str:
        name = type(event).__name__
        return "\n  ".join([f"{name} {received}", *(str(fact) for fact in facts)])

    def _allowed(
        self, event: Event, before: Replica, change: Change | None, now_ms: int
    ) -> tuple[Message | None, list[Step]]:
        """Return the message in an event, and its allowed direct results."""
        quorum = self._replica.quorum
        if isinstance(event, RequestReceived):
            received = messages.of_request(event.request, quorum.config)
            return received, self._on_request(received, before, change, now_ms)
        if isinstance(event, ResponseReceived):
            asked = self._take_asked(event.request_id, now_ms)
            received = messages.of_response(event.response, asked)
            steps = [Step(before), *_voter_changes(before, change)]
            if received is not None:
                steps += rules.receive(before, received)
            elif messages.lacks_pre_votes(event.response) and before.role == "prospective":
                steps.append(Step(rules.standing(before)))
            return received, steps
        if isinstance(event, RequestFailed):
            self._asked.pop(event.request_id, None)  # a later answer is late
        return None, self._on_own_event(event, before, change)

    def _take_asked(self, request_id: int, now_ms: int) -> Message | None:
        """Return the request that is answered; a late answer, or of an earlier role, is lost."""
        message, role, until_ms = self._asked.pop(request_id, (None, None, 0))
        return message if role is self._role and now_ms < until_ms else None

    def _on_request(
        self, received: Message | None, before: Replica, change: Change | None, now_ms: int
    ) -> list[Step]:
        if received is None:
            return [Step(before), *_voter_changes(before, change)]
        if self._is_stopping and isinstance(received, Fetch | FetchSnapshot):
            answered = Answer(before.key.id, received.source.id, before.epoch, before.leader)
            return [Step(before, answered)]
        if isinstance(received, Vote) and self._is_fetch_due(now_ms):
            late = before._replace(is_overdue=before.role == "follower")
            return [*rules.receive(before, received), *rules.receive(late, received)]
        if isinstance(received, End) and received.epoch >= before.epoch:
            self._leader_answered_ms = -_AGES_MS  # its successors need not wait for its silence
        return list(rules.receive(before, received))

    def _on_own_event(self, event: Event, before: Replica, change: Change | None) -> list[Step]:
        match event:
            case Started(election):
                stored = messages.with_election(before, election)
                return [Step(each) for each in rules.restarted(stored)]
            case AppendRequested() if before.role == "leader" and change is not None:
                return [Step(before, None, Append())]
            case SnapshotInstalled():
                return [Step(rules.installed(before))]
            case SnapshotRefused():
                return [Step(before._replace(wanted=None))]
            case ShutdownRequested():
                self._is_stopping = True
            case ResignRequested(leader_epoch):
                self._may_resign = leader_epoch == before.epoch
        return [Step(before), *_voter_changes(before, change)]

    # -- what it does by itself ------------------------------------------------------------------

    def _match(
        self,
        steps: list[Step],
        after: Replica,
        change: Change | None,
        answer: Message | None,
        now_ms: int,
    ) -> Step | None:
        """Return the first step that leads to the actual state, maybe with further own steps."""
        rest: list[Step] = []
        for step in steps:
            if answer is not None and not _is_answer(step.answer, answer, after):
                continue
            if _is_change(step.change, change) and self._is_same(step.after, after):
                return step
            rest.append(step)
        due = rules.Due(self._is_fetch_due(now_ms), self._is_quorum_due(now_ms))
        for step in rest:
            if self._leads_to(step.after, step.change, after, change, due):
                return step
        return None

    def _leads_to(
        self,
        state: Replica,
        done: Change | None,
        after: Replica,
        change: Change | None,
        due: rules.Due,
        left: int = _STEPS_MAX,
    ) -> bool:
        if _is_change(done, change) and self._is_same(state, after):
            return True
        if left == 0 or state.epoch > after.epoch:
            return False
        for step in rules.internal(state, due):
            if done is not None and step.change is not None:
                continue
            now_done = done if step.change is None else step.change
            if self._leads_to(step.after, now_done, after, change, due, left - 1):
                return True
        return False

    def _is_same(self, state: Replica, after: Replica) -> bool:
        """Compare; a leader may drop observers that stopped responding, and lateness is not a
        state.
        """
        if state.is_overdue:
            state = state._replace(is_overdue=False)
        if state == after:
            return True
        if state.role != "leader" or state.ends == after.ends or not after.ends <= state.ends:
            return False
        voters = state.log.voters
        gone = state.ends - after.ends
        return not any(is_member(voters, key) for key, _ in gone) and (
            state._replace(ends=after.ends) == after
        )

    def _is_fetch_due(self, now_ms: int) -> bool:
        return now_ms - self._leader_answered_ms >= self._fetch_timeout_ms

    def _is_quorum_due(self, now_ms: int) -> bool:
        is_asked = self._is_stopping or self._may_resign
        return is_asked or now_ms - self._period_ms >= self._check_quorum_ms

    # -- messages --------------------------------------------------------------------------------

    def _answer_now(
        self, event: Event, received: Message | None, effects: list[Effect]
    ) -> Message | None:
        """Return the answer to the request that is being handled, None before there is one.

        A malformed request gets an error, which has nothing to compare.
        """
        if not isinstance(event, RequestReceived):
            return None
        for effect in effects:
            if isinstance(effect, _Answered) and effect.reply_to is event.reply_to:
                answered = messages.of_answer(effect, received, self._state.key.id)
                is_refused = not isinstance(answered, Voted | Fetched | FetchedSnapshot)
                return None if received is None and is_refused else answered
        return None

    def _judge_parked(
        self,
        event: Event,
        received: Message | None,
        answer: Message | None,
        matched: Step,
        after: Replica,
    ) -> None:
        """A request is answered in its step; only a fetch that agrees may wait."""
        if not isinstance(event, RequestReceived) or received is None or answer is not None:
            return
        if isinstance(received, FetchSnapshot):
            return  # refused for its position, which the model lacks
        answered = matched.answer
        may_wait = (
            isinstance(answered, Fetched)
            and answered.diverging is None
            and answered.snapshot is None
        )
        if not may_wait or not isinstance(received, Fetch):
            raise NotInModel(self._story(event, received, after, "is not answered"))
        self._parked[id(event.reply_to)] = (event.reply_to, received)

    def _judge_messages(
        self,
        event: Event,
        received: Message | None,
        effects: list[Effect],
        before: Replica,
        after: Replica,
    ) -> None:
        """Check that a message that leaves matches the state, and that its promises are durable."""
        durable = (before.epoch, before.voted)
        if isinstance(event, Started):
            durable = (-1, None)
        for effect in effects:
            sent: Message | None = None
            if isinstance(effect, PersistElectionState):
                durable = messages.durable_of(effect)
            elif isinstance(effect, SendRequest):
                sent = self._judge_request(effect, after)
            elif isinstance(effect, _Answered):
                sent = self._judge_late_answer(effect, event, received, after)
            if sent is not None and not _is_durable(sent, durable):
                raise NotInModel(self._story(event, sent, after, f"on the disk: {durable}"))
        if durable != (after.epoch, after.voted):
            raise NotInModel(self._story(event, None, after, f"on the disk: {durable}"))

    def _judge_request(self, effect: SendRequest, after: Replica) -> Message | None:
        sent = self._remember(effect, after.key)
        if sent is None:
            return None
        target = sent.target.id if isinstance(sent.target, Key) else sent.target
        assert target is not None, sent
        peer = Key(target)
        state = after._replace(is_overdue=True) if after.role == "follower" else after
        if sent not in rules.requests(state, (peer,)):
            raise NotInModel(self._story(None, sent, after, "is not to be sent"))
        return sent

    def _remember(self, effect: SendRequest, own: Key) -> Message | None:
        """Store a request whose answer will be compared, and return it."""
        sent = messages.of_sent(effect.request, effect.node_id)
        quorum = self._replica.quorum
        until_ms = self._replica.stepped_ms + quorum.config.timing.request_timeout_ms
        if sent is not None:
            self._asked[effect.request_id] = (sent, quorum.role, until_ms)
        return sent

    def _judge_late_answer(
        self, effect: _Answered, event: Event, received: Message | None, after: Replica
    ) -> Message | None:
        """Compare the answer to a fetch that has waited; others were compared with their step."""
        if isinstance(event, RequestReceived) and effect.reply_to is event.reply_to:
            return messages.of_answer(effect, received, after.key.id)
        parked = self._parked.pop(id(effect.reply_to), None)
        if parked is None:
            return None
        answered = messages.of_answer(effect, parked[1], after.key.id)
        allowed = list(rules.receive(after, parked[1]))
        is_true = answered is not None and any(
            _is_answer(s.answer, answered, after) for s in allowed
        )
        if not is_true and not (self._is_stopping and isinstance(answered, Answer)):
            raise NotInModel(self._story(event, answered, after, "answers", parked[1]))
        return answered

    # -- time ------------------------------------------------------------------------------------

    def _note_time(
        self, received: Message | None, contact: Key | None, before: Replica, now_ms: int
    ) -> None:
        """Remember when a leader was heard, and when a leader heard a majority."""
        state, role = self._state, self._replica.quorum.role
        self._may_resign = False
        if role is not self._role:
            self._role, self._leader_answered_ms, self._period_ms = role, now_ms, now_ms
            self._fetched_from = set()
            if isinstance(received, End):
                self._leader_answered_ms = -_AGES_MS
        if state.role == "follower":
            if _is_from_leader(received, before, state) and not state.has_ended:
                self._leader_answered_ms = now_ms
        elif state.role == "leader" and contact is not None:
            self._note_contact(contact, now_ms)

    def _note_contact(self, key: Key, now_ms: int) -> None:
        """A leader's time begins again once a majority has been in touch."""
        state = self._state
        if key.id == state.key.id or not is_member(state.log.voters, key):
            return
        self._fetched_from.add(key.id)
        needed = state.majority - state.is_voter
        if len(self._fetched_from & {voter.id for voter in state.log.voters}) >= needed:
            self._fetched_from, self._period_ms = set(), now_ms


def _is_from_leader(received: Message | None, before: Replica, state: Replica) -> bool:
    """Return whether an answer shows a follower that its leader is alive."""
    if isinstance(received, Fetched):
        return received.epoch == state.epoch and received.asked == state.log.last
    if isinstance(received, FetchedSnapshot) and before.wanted is not None:
        return received.epoch == state.epoch and received.snapshot == before.wanted
    return False


def _voter_changes(before: Replica, change: Change | None) -> Iterator[Step]:
    """Yield the voter change that was made, if it may begin."""
    if isinstance(change, Append) and change.voters is not None:
        yield from rules.begin_change(before, _as_voters(change))


def _as_voters(change: Append) -> Voters:
    assert change.voters is not None
    return change.voters


def _is_change(allowed: Change | None, made: Change | None) -> bool:
    """Compare changes of the log; a first record may carry the voters again."""
    if isinstance(allowed, Append) and isinstance(made, Append):
        return allowed.voters in (made.voters, None)
    if isinstance(allowed, Take):
        return isinstance(made, Take)
    return allowed == made


def _is_answer(allowed: Message | None, answered: Message, after: Replica) -> bool:
    """Compare answers; a fetch may be answered with the high watermark that it brought about."""
    if isinstance(allowed, Fetched) and isinstance(answered, Fetched):
        reached = after.commits if after.role == "leader" else after.watermark
        is_mark = answered.watermark in (allowed.watermark, reached)
        return is_mark and allowed == answered._replace(watermark=allowed.watermark, records=None)
    if isinstance(answered, Answer) and not isinstance(allowed, Answer):
        return _is_refusal(allowed, answered, after)
    if isinstance(allowed, Voted) and isinstance(answered, Voted):
        return allowed._replace(is_pre=answered.is_pre) == answered
    return allowed == answered


def _is_refusal(allowed: Message | None, answered: Answer, after: Replica) -> bool:
    """Return whether an error may replace an answer."""
    if isinstance(allowed, Fetched):  # the commit by this fetch ended the leadership
        return after.role != "leader" and (answered.epoch, answered.leader) == (
            after.epoch,
            after.leader,
        )
    if isinstance(allowed, Voted) and allowed.is_granted:
        return False
    if not isinstance(allowed, Voted | FetchedSnapshot):
        return False
    return (allowed.epoch, allowed.leader) == (answered.epoch, answered.leader)


def _is_durable(sent: Message, durable: tuple[int, Key | None]) -> bool:
    """Return whether the promises of a message are on the disk: its epoch, and a vote in it."""
    epoch, voted = durable
    if sent.epoch > epoch:
        return False
    if isinstance(sent, Vote) and not sent.is_pre and sent.epoch == epoch:
        return voted is not None and matches(voted, sent.source)
    if isinstance(sent, Voted) and sent.is_granted and not sent.is_pre:
        return voted is not None and voted.id == sent.target
    return True
