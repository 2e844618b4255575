"""A random walk of share group members: joins, heartbeats, leaves, time, topics, initialisation.

The members do what clients do: they take the epoch of each answer. Now and then one repeats itself,
is late, or lies. The share coordinators answer late, and sometimes with an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tests.broker.groups.consumer.walk import NAMES, RACKS, Client, Walk


class ShareWalk(Walk):
    """One walk of a seed through one share group."""

    def __init__(self, seed: int, ask: Any) -> None:
        super().__init__(seed, ask)
        self._beginning: list[list[list[Any]]] = []
        """Partitions that the share coordinators are asked about, by topic, the oldest first."""
        self._deleting: list[list[list[str]]] = []
        """Topics whose state the share coordinators are asked to remove, by id and name."""
        self._sizes: dict[str, int] = {}

    def run(self, steps_max: int) -> None:
        """Take as many steps, and look at the group now and then."""
        self.ask({"step": "start", "settings": self._settings(), "nowMs": 1_700_000_000_000})
        for number, rack in enumerate(RACKS, 1):
            self.ask({"step": "broker", "id": number, "rack": rack})
        self._make_topic()
        for _ in range(steps_max):
            chosen = self.chance.choices(*zip(*self._choices(), strict=True))[0]
            chosen()
            if self.chance.random() < 0.4:
                self.ask({"step": "share describe", "groups": ["group"]})
        self.ask({"step": "advance", "ms": 200_000})

    def _settings(self) -> dict[str, str]:
        return {
            "group.share.assignment.interval.ms": str(self.chance.choice((0, 1000))),
            "group.share.initialize.retry.interval.ms": "7000",
            "group.share.max.size": str(self.chance.choice((4, 200))),
        }

    def _choices(self) -> Iterator[tuple[Callable[[], None], int]]:
        yield self._join, 4 if len(self.clients) < 7 else 1
        yield self._advance, 3
        yield self._make_topic, 1 if len(self.topics) < len(NAMES) else 0
        if self.topics:
            yield self._delete_topic, 1
            yield self._grow_topic, 1
        if self._beginning:
            yield self._begun, 8
        is_idle = not self.clients
        yield self._alter, 3 if is_idle else 1
        yield self._delete_offsets, 3 if is_idle else 1
        yield self._delete, 2 if is_idle else 0
        if self._deleting:
            yield self._deleted_offsets, 4
        if self.clients:
            yield self._all_leave, 1
            yield self._beat, 16
            yield self._leave, 1
            yield self._resubscribe, 2
            yield self._lie, 1

    # --- Topics ------------------------------------------------------------------------------

    def _make_topic(self) -> None:
        super()._make_topic()
        made = self.taken[-1][0]
        self._sizes[made["name"]] = len(made["replicas"])

    def _grow_topic(self) -> None:
        name = self.chance.choice(sorted(self.topics))
        self._sizes[name] += self.chance.randint(1, 20)
        replicas = [1 + number % 3 for number in range(self._sizes[name])]
        self.ask({"step": "topic", "name": name, "id": self.topics[name], "replicas": replicas})

    def _delete_topic(self) -> None:
        super()._delete_topic()
        if self.chance.random() < 0.9:
            self.ask({"step": "share clean up", "id": self.taken[-1][0]["id"]})

    # --- Initialisation ----------------------------------------------------------------------

    def _begun(self) -> None:
        topics = self._beginning.pop(self.chance.randrange(len(self._beginning)))
        self.chance.shuffle(topics)
        ok = self.chance.random() < 0.85
        self.ask({"step": "share begun", "group": "group", "topics": topics, "ok": ok})

    # --- Administration ----------------------------------------------------------------------

    def _alter(self) -> None:
        names = [*self.chance.sample(NAMES, self.chance.randint(1, 2))]
        topics = [
            {
                "topicName": name,
                "partitions": [
                    {"partitionIndex": number, "startOffset": self.chance.choice((-5, 0, 7))}
                    for number in range(self.chance.randint(1, 9))
                ],
            }
            for name in names
        ]
        request = {"groupId": "group", "topics": topics}
        self._note(self.ask({"step": "share alter", "request": request}))

    def _delete_offsets(self) -> None:
        names = self.chance.sample(NAMES, self.chance.randint(1, 3))
        request = {"groupId": "group", "topics": [{"topicName": name} for name in names]}
        answer = self.ask({"step": "share delete offsets", "request": request})
        asked = dict.fromkeys(topic for topic, *_ in answer.get("asked", ()))
        if asked:
            of_ids = {text: name for name, text in self.topics.items()}
            self._deleting.append([[text, of_ids[text]] for text in asked])

    def _deleted_offsets(self) -> None:
        topics = self._deleting.pop()
        self.ask({"step": "share deleted offsets", "group": "group", "topics": topics})

    def _delete(self) -> None:
        answer = self.ask({"step": "share delete", "group": "group"})
        if "error" not in answer and self.chance.random() < 0.7:
            self.ask({"step": "delete", "group": "group"})

    def _all_leave(self) -> None:
        while self.clients:
            self._leave()

    # --- Members -----------------------------------------------------------------------------

    def _join(self) -> None:
        self._made += 1
        client = Client(f"member-{self._made}", None, self._some_names())
        rack = self.chance.choice(RACKS)
        if self._beat_with(client, 0, subscribedTopicNames=client.names, rackId=rack):
            self.clients.append(client)

    def _beat(self) -> None:
        client = self.chance.choice(self.clients)
        epoch = 0 if self.chance.random() < 0.05 else client.epoch
        names = client.names if epoch == 0 or self.chance.random() < 0.1 else None
        self._beat_with(client, epoch, subscribedTopicNames=names)

    def _resubscribe(self) -> None:
        client = self.chance.choice(self.clients)
        client.names = self._drawn_names()
        self._beat_with(client, client.epoch, subscribedTopicNames=client.names)

    def _leave(self) -> None:
        client = self.clients.pop(self.chance.randrange(len(self.clients)))
        self._beat_with(client, -1)

    def _lie(self) -> None:
        client = self.chance.choice(self.clients)
        epoch = client.epoch + self.chance.choice((-2, -1, -1, 1))
        self._beat_with(client, max(epoch, 1), is_lie=True)

    def _some_names(self) -> list[str]:
        return self.chance.sample(NAMES, self.chance.choice((1, 2, 2, 3)))

    def _beat_with(
        self, client: Client, epoch: int, *, is_lie: bool = False, **fields: Any
    ) -> bool:
        """Send a heartbeat, and do what the answer says; whether there was no error."""
        request = {
            "groupId": "group",
            "memberId": client.member_id,
            "memberEpoch": epoch,
            "rackId": None,
            "subscribedTopicNames": None,
            **fields,
        }
        answer = self.ask({"step": "share heartbeat", "client": "walker", "request": request})
        # No two timers are due at once: their order is not part of the protocol.
        self.ask({"step": "advance", "ms": 1})
        self._note(answer)
        if "response" not in answer:
            if not is_lie and client in self.clients:
                self.clients.remove(client)
            return False
        if epoch >= 0:
            client.epoch = answer["response"]["memberEpoch"]
        return True

    def _note(self, answer: dict[str, Any]) -> None:
        """Remember what the share coordinators are asked."""
        topics: dict[str, list[int]] = {}
        for topic, partition, *_ in answer.get("asked", ()):
            topics.setdefault(topic, []).append(partition)
        if topics:
            self._beginning.append([[topic, numbers] for topic, numbers in topics.items()])
