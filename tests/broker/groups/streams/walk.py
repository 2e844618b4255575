"""A random walk of streams group members: joins, heartbeats, leaves, time, topics.

The members do what clients do: they take the epoch and the tasks of each answer, and report what
they own. Now and then one repeats itself, is late, or lies. Internal topics that are missing are
created late.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from typing import Any

from tests.broker.groups.consumer.walk import RACKS, START_MS, Walk

SOURCES = ("alpha", "beta", "gamma")
KINDS = ("activeTasks", "standbyTasks", "warmupTasks")
NOTHING: dict[str, Any] = dict.fromkeys(KINDS)


class StreamsClient:
    """One member, as its client knows it."""

    def __init__(self, member_id: str, process_id: str) -> None:
        self.member_id = member_id
        self.process_id = process_id
        self.epoch = 0
        self.endpoint_epoch = 0
        self.owned: dict[str, list[dict[str, Any]]] = {kind: [] for kind in KINDS}
        self.had: list[dict[str, Any]] = []
        """The active tasks before the last answer with tasks."""
        self.has_news = False
        """Whether the next heartbeat says what is owned."""


def subtopology(number: int, sources: list[str], **more: Any) -> dict[str, Any]:
    """Return a subtopology that reads topics."""
    return {
        "subtopologyId": str(number),
        "sourceTopics": sources,
        "sourceTopicRegex": [],
        "stateChangelogTopics": [],
        "repartitionSinkTopics": [],
        "repartitionSourceTopics": [],
        "copartitionGroups": [],
        **more,
    }


def internal_topic(name: str) -> dict[str, Any]:
    """Return an internal topic whose partition count the coordinator decides."""
    configs = [{"key": "cleanup.policy", "value": "compact"}]
    return {"name": name, "partitions": 0, "replicationFactor": 0, "topicConfigs": configs}


class StreamsWalk(Walk):
    """One walk of a seed through one streams group."""

    def __init__(self, seed: int, ask: Any) -> None:
        super().__init__(seed, ask)
        self.members: list[StreamsClient] = []
        self.missing: dict[str, int] = {}
        """Internal topics that the coordinator asks for, with their partition counts."""
        self.sizes: dict[str, int] = {}
        self.topology: dict[str, Any] = {}
        self.has_endpoints = self.chance.random() < 0.5

    def run(self, steps_max: int) -> None:
        """Take as many steps, and look at the group now and then; delete it if it is empty."""
        self.ask({"step": "start", "settings": self._settings(), "nowMs": START_MS})
        for number, rack in enumerate(RACKS, 1):
            self.ask({"step": "broker", "id": number, "rack": rack})
        self.topology = self._drawn_topology()
        for name in SOURCES:
            if self.chance.random() < 0.9:
                self._make(name, self.chance.randint(1, 5))
        for _ in range(steps_max):
            chosen = self.chance.choices(*zip(*self._choices(), strict=True))[0]
            chosen()
            if self.chance.random() < 0.4 and self._is_there():
                self.ask({"step": "streams describe", "groups": ["group"]})
        self.ask({"step": "advance", "ms": 200_000})
        self.ask({"step": "delete", "group": "group"})
        self.ask({"step": "list"})

    def _is_there(self) -> bool:
        return any("response" in answer for _, answer in self.taken)

    def _settings(self) -> dict[str, str]:
        return {
            "group.streams.assignment.interval.ms": str(self.chance.choice((0, 0, 1000))),
            "group.streams.initial.rebalance.delay.ms": str(self.chance.choice((0, 0, 3000))),
            "group.streams.num.standby.replicas": str(self.chance.choice((0, 1, 1, 2))),
            "group.streams.max.size": str(self.chance.choice((4, 200))),
        }

    def _drawn_topology(self) -> dict[str, Any]:
        changelog = {"stateChangelogTopics": [internal_topic("store-changelog")]}
        first = subtopology(0, ["alpha"], **(changelog if self.chance.random() < 0.7 else {}))
        subtopologies = [first]
        if self.chance.random() < 0.7:
            first["repartitionSinkTopics"] = ["by-key-repartition"]
            second = subtopology(
                1,
                ["beta"] if self.chance.random() < 0.5 else [],
                repartitionSourceTopics=[internal_topic("by-key-repartition")],
                stateChangelogTopics=[internal_topic("count-changelog")],
            )
            subtopologies.append(second)
        if self.chance.random() < 0.4:
            subtopologies.append(subtopology(2, ["gamma"]))
        return {"epoch": self.chance.choice((0, 3)), "subtopologies": subtopologies}

    def _choices(self) -> Iterator[tuple[Callable[[], None], int]]:
        yield self._join, 4 if len(self.members) < 6 else 1
        yield self._advance, 3
        yield self._make_source, 2 if len(self.sizes) < len(SOURCES) else 0
        yield self._grow, 1 if self.chance.random() < 0.4 else 0
        if self.missing:
            yield self._make_internal, 12
        if self.sizes:
            yield self._delete_one, 1 if self.chance.random() < 0.4 else 0
        if self.members:
            yield self._beat_some, 24
            yield self._leave, 1
            yield self._lie, 2
            yield self._commit, 6
            yield self._fetch, 1
            yield self._shut_down, 1 if self.chance.random() < 0.4 else 0

    # --- Topics ------------------------------------------------------------------------------

    def _make(self, name: str, count: int) -> None:
        self._made += 1
        drawn = self.chance.getrandbits(64).to_bytes(8, "big") + self._made.to_bytes(8, "big")
        self.topics[name] = base64.urlsafe_b64encode(drawn).decode().rstrip("=")
        self._size(name, count)

    def _size(self, name: str, count: int) -> None:
        self.sizes[name] = count
        replicas = [1 + number % 3 for number in range(count)]
        self.ask({"step": "topic", "name": name, "id": self.topics[name], "replicas": replicas})

    def _make_source(self) -> None:
        missing = [name for name in SOURCES if name not in self.sizes]
        if missing:
            self._make(self.chance.choice(missing), self.chance.randint(1, 5))

    def _make_internal(self) -> None:
        name, count = self.missing.popitem()
        if name not in self.sizes:
            self._make(name, count if self.chance.random() < 0.95 else count + 1)

    def _grow(self) -> None:
        if self.sizes:
            name = self.chance.choice(sorted(self.sizes))
            self._size(name, self.sizes[name] + 1)

    def _delete_one(self) -> None:
        name = self.chance.choice(sorted(self.sizes))
        del self.sizes[name]
        self.ask({"step": "delete topic", "id": self.topics.pop(name)})

    # --- Members -----------------------------------------------------------------------------

    def _join(self) -> None:
        self._made += 1
        client = StreamsClient(f"member-{self._made}", f"process-{self._made % 3}")
        if self._enter(client):
            self.members.append(client)

    def _enter(self, client: StreamsClient) -> bool:
        topology = self.topology
        if self.chance.random() < 0.1:
            topology = {**topology, "epoch": topology["epoch"] + self.chance.choice((-1, 1))}
        endpoint = {"host": client.process_id, "port": 8080} if self.has_endpoints else None
        tags = [{"key": "zone", "value": "b"}, {"key": "rack", "value": "a"}]
        return self._send(
            client,
            0,
            topology=topology,
            rebalanceTimeoutMs=self.chance.choice((4_000, 60_000)),
            processId=client.process_id,
            userEndpoint=endpoint,
            clientTags=tags[: self.chance.randint(0, 2)],
            rackId=self.chance.choice(RACKS),
            **{kind: [] for kind in KINDS},
        )

    def _beat_some(self) -> None:
        client = self.chance.choice(self.members)
        if self.chance.random() < 0.04:
            client.owned = {kind: [] for kind in KINDS}
            self._enter(client)
            return
        fields = NOTHING
        if client.has_news or self.chance.random() < 0.1:
            fields = client.owned
            client.has_news = False
        self._send(client, client.epoch, **fields)

    def _leave(self) -> None:
        client = self.members.pop(self.chance.randrange(len(self.members)))
        self._send(client, -1)

    def _shut_down(self) -> None:
        client = self.chance.choice(self.members)
        epoch = self.chance.choice((-1, client.epoch))
        self._send(client, epoch, shutdownApplication=True)
        if epoch == -1 and client in self.members:
            self.members.remove(client)

    def _lie(self) -> None:
        client = self.chance.choice(self.members)
        epoch = client.epoch + self.chance.choice((-2, -1, -1, 0, 1))
        wrong = [{"subtopologyId": "0", "partitions": [self.chance.choice((0, 4, 99))]}]
        other = {**client.owned, "activeTasks": wrong}
        empty = {kind: [] for kind in KINDS}
        owned = self.chance.choice((NOTHING, empty, client.owned, other))
        self._send(client, max(epoch, 1), is_lie=True, **owned)

    def _commit(self) -> None:
        """Commit an offset of a task that a member has, or had, or perhaps never had."""
        client = self.chance.choice(self.members)
        topic, partition = self.chance.choice(SOURCES), self.chance.randint(0, 4)
        tasks = [*client.had, *client.had, *client.owned["activeTasks"]]
        if tasks and self.chance.random() < 0.8:
            task = self.chance.choice(tasks)
            topic = ("alpha", "by-key-repartition", "gamma")[int(task["subtopologyId"])]
            partition = self.chance.choice(task["partitions"])
        self.ask(
            {
                "step": "streams commit",
                "group": "group",
                "member": client.member_id,
                "epoch": client.epoch + self.chance.choice((-2, -1, -1, 0, 1)),
                "topic": topic,
                "partition": partition,
            }
        )

    def _fetch(self) -> None:
        client = self.chance.choice(self.members)
        epoch = client.epoch + self.chance.choice((-1, 0, 0, 1))
        member = self.chance.choice((client.member_id, "nobody"))
        self.ask({"step": "streams fetch", "group": "group", "member": member, "epoch": epoch})

    def _send(
        self, client: StreamsClient, epoch: int, *, is_lie: bool = False, **fields: Any
    ) -> bool:
        """Send a heartbeat, and do what the answer says; whether there was no error."""
        request = {
            "groupId": "group",
            "memberId": client.member_id,
            "memberEpoch": epoch,
            "endpointInformationEpoch": client.endpoint_epoch,
            "instanceId": None,
            "rackId": None,
            "rebalanceTimeoutMs": -1,
            "topology": None,
            **NOTHING,
            "processId": None,
            "userEndpoint": None,
            "clientTags": None,
            "taskOffsets": None,
            "taskEndOffsets": None,
            "shutdownApplication": False,
            **fields,
        }
        answer = self.ask({"step": "streams heartbeat", "client": "walker", "request": request})
        # No two timers are due at once: their order is not part of the protocol.
        self.ask({"step": "advance", "ms": 1})
        self.missing |= dict(answer.get("topics", ()))
        if "response" not in answer:
            if not is_lie and client in self.members:
                self.members.remove(client)
            return False
        if epoch >= 0:
            self._follow(client, answer["response"])
        return True

    def _follow(self, client: StreamsClient, response: dict[str, Any]) -> None:
        client.epoch = response["memberEpoch"]
        client.endpoint_epoch = response["endpointInformationEpoch"]
        if response["activeTasks"] is not None:
            client.had = client.owned["activeTasks"]
            client.owned = {kind: response[kind] for kind in KINDS}
            client.has_news = True
