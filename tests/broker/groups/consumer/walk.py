"""A random walk of consumer group members: joins, heartbeats, leaves, restarts, time, topics.

The members do what clients do: they take the epoch and the partitions of each answer, and report
what they own. Now and then one repeats itself, is late, or lies. The walk asks whoever coordinates
the group, so that two coordinators can take the same walk.
"""

from __future__ import annotations

import base64
import random
from collections.abc import Callable, Iterator
from typing import Any

from tests.broker.groups.consumer.apache_groups import Answer, Step

START_MS = 1_700_000_000_000
NAMES = ("alpha", "beta", "gamma", "delta", "epsilon")
REGEXES = ("a.*", ".*ta", "gamma|delta", "[", "")
RACKS = (None, "north", "south")


class Client:
    """One member, as its client knows it."""

    def __init__(self, member_id: str, instance_id: str | None, names: list[str]) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.names = names
        self.regex: str | None = None
        self.assignor: str | None = None
        self.epoch = 0
        self.owned: dict[str, list[int]] = {}
        self.has_news = False
        """Whether the next heartbeat says what is owned."""


class Walk:
    """One walk of a seed through one group."""

    def __init__(self, seed: int, ask: Callable[[Step], Answer], *, regexes: bool = True) -> None:
        self.chance = random.Random(seed)
        self.taken: list[tuple[Step, Answer]] = []
        self.clients: list[Client] = []
        self.resting: list[Client] = []
        """Static members that left for a while."""
        self.topics: dict[str, str] = {}
        self._ask = ask
        self._regexes = regexes
        self._made = 0

    def run(self, steps_max: int) -> None:
        """Take as many steps, and look at the group now and then; delete it if it is empty."""
        self.ask({"step": "start", "settings": self._settings(), "nowMs": START_MS})
        for number, rack in enumerate(RACKS, 1):
            self.ask({"step": "broker", "id": number, "rack": rack})
        self._make_topic()
        for _ in range(steps_max):
            chosen = self.chance.choices(*zip(*self._choices(), strict=True))[0]
            chosen()
            if self.chance.random() < 0.4:
                self.ask({"step": "describe", "groups": ["group"]})
        self.ask({"step": "advance", "ms": 200_000})
        self.ask({"step": "delete", "group": "group"})

    def _settings(self) -> dict[str, str]:
        interval_ms = self.chance.choice((0, 1000))
        return {"group.consumer.assignment.interval.ms": str(interval_ms)}

    def ask(self, step: Step) -> Answer:
        """Take a step."""
        answer = self._ask(step)
        self.taken.append((step, answer))
        return answer

    def _choices(self) -> Iterator[tuple[Callable[[], None], int]]:
        yield self._join, 3 if len(self.clients) < 6 else 0
        yield self._advance, 3
        yield self._make_topic, 1 if len(self.topics) < len(NAMES) else 0
        if self.topics:
            yield self._delete_topic, 1
        if self.resting:
            yield self._return, 2
        if self.clients:
            yield self._beat, 16
            yield self._leave, 1
            yield self._rest, 1
            yield self._resubscribe, 2
            yield self._lie, 1

    # --- Time and topics ---------------------------------------------------------------------

    def _advance(self) -> None:
        self.ask({"step": "advance", "ms": self.chance.choice((1, 400, 1_000, 3_000, 12_000))})

    def _make_topic(self) -> None:
        name = self.chance.choice([each for each in NAMES if each not in self.topics])
        self._made += 1
        drawn = self.chance.getrandbits(64).to_bytes(8, "big") + self._made.to_bytes(8, "big")
        self.topics[name] = base64.urlsafe_b64encode(drawn).decode().rstrip("=")
        replicas = [self.chance.randint(1, 3) for _ in range(self.chance.randint(1, 7))]
        topic = {"name": name, "id": self.topics[name], "replicas": replicas}
        self.ask({"step": "topic", **topic})

    def _delete_topic(self) -> None:
        name = self.chance.choice(sorted(self.topics))
        self.ask({"step": "delete topic", "id": self.topics.pop(name)})

    # --- Members -----------------------------------------------------------------------------

    def _join(self) -> None:
        self._made += 1
        instance = f"static-{self._made % 3}" if self.chance.random() < 0.3 else None
        client = Client(f"member-{self._made}", instance, self._drawn_names())
        if self._regexes and self.chance.random() < 0.3:
            client.regex = self.chance.choice(REGEXES)
        client.assignor = self.chance.choice((None, None, "range", "uniform"))
        self._enter(client)

    def _return(self) -> None:
        former = self.resting.pop(self.chance.randrange(len(self.resting)))
        self._made += 1
        client = Client(f"member-{self._made}", former.instance_id, former.names)
        client.regex = former.regex
        self._enter(client)

    def _enter(self, client: Client) -> None:
        full = {
            "rebalanceTimeoutMs": self.chance.choice((4_000, 60_000)),
            "subscribedTopicNames": client.names,
            "subscribedTopicRegex": client.regex,
            "serverAssignor": client.assignor,
            "topicPartitions": [],
            "rackId": self.chance.choice(RACKS),
            "instanceId": client.instance_id,
        }
        if self._heartbeat(client, 0, **full):
            self.clients.append(client)

    def _beat(self) -> None:
        client = self.chance.choice(self.clients)
        fields: dict[str, Any] = {}
        if client.has_news or self.chance.random() < 0.1:
            fields["topicPartitions"] = self._owned(client)
            client.has_news = False
        self._heartbeat(client, client.epoch, **fields)

    def _resubscribe(self) -> None:
        client = self.chance.choice(self.clients)
        client.names = self._drawn_names()
        self._heartbeat(client, client.epoch, subscribedTopicNames=client.names)

    def _leave(self) -> None:
        client = self.clients.pop(self.chance.randrange(len(self.clients)))
        self._heartbeat(client, -1, instanceId=client.instance_id)

    def _rest(self) -> None:
        client = self.chance.choice(self.clients)
        if self._heartbeat(client, -2, instanceId=client.instance_id):
            self.clients.remove(client)
            self.resting.append(client)

    def _lie(self) -> None:
        client = self.chance.choice(self.clients)
        epoch = client.epoch + self.chance.choice((-2, -1, -1, 1))
        owned = self.chance.choice((None, [], self._owned(client)))
        self._heartbeat(client, max(epoch, 1), is_lie=True, topicPartitions=owned)

    def _heartbeat(
        self, client: Client, epoch: int, *, is_lie: bool = False, **fields: Any
    ) -> bool:
        """Send a heartbeat, and do what the answer says; whether there was no error."""
        request = {
            "groupId": "group",
            "memberId": client.member_id,
            "memberEpoch": epoch,
            "instanceId": None,
            "rackId": None,
            "rebalanceTimeoutMs": -1,
            "subscribedTopicNames": None,
            "subscribedTopicRegex": None,
            "serverAssignor": None,
            "topicPartitions": None,
            **fields,
        }
        step = {"step": "heartbeat", "version": 1, "client": "walker", "request": request}
        answer = self.ask(step)
        if self._regexes:
            self.ask({"step": "tasks"})
        # No two timers are due at once: their order is not part of the protocol.
        self.ask({"step": "advance", "ms": 1})
        if "response" not in answer:
            if not is_lie and client in self.clients:
                self.clients.remove(client)
            return False
        response = answer["response"]
        if epoch >= 0:
            client.epoch = response["memberEpoch"]
        if response["assignment"] is not None:
            self._reconcile(client, response["assignment"]["topicPartitions"])
        return True

    def _reconcile(self, client: Client, topics: list[dict[str, Any]]) -> None:
        client.owned = {each["topicId"]: each["partitions"] for each in topics}
        client.has_news = True

    def _owned(self, client: Client) -> list[dict[str, Any]]:
        return [{"topicId": each, "partitions": parts} for each, parts in client.owned.items()]

    def _drawn_names(self) -> list[str]:
        if self.chance.random() < 0.1:
            return []
        return self.chance.sample(NAMES, self.chance.choice((1, 2, 2, 3)))
