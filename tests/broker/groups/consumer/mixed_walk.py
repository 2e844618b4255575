"""A random walk of members of both protocols: classic clients join, sync, rejoin, switch, leave.

Classic clients do what real ones do: they ask for an id, lead, assign, rejoin when a heartbeat says
so, revoke before they rejoin (eager) or after they were told (cooperative).
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from typing import Any

from kraft_wire.wire.generated.consumer_protocol_assignment import ConsumerProtocolAssignment
from kraft_wire.wire.generated.consumer_protocol_assignment import TopicPartition as Assigned
from kraft_wire.wire.generated.consumer_protocol_subscription import (
    ConsumerProtocolSubscription,
    TopicPartition,
)
from kraft_wire.wire.message import MalformedMessage
from tests.broker.groups.consumer.apache_groups import Answer, Step
from tests.broker.groups.consumer.walk import Client, Walk

EAGER, COOPERATIVE = ("range",), ("cooperative-sticky", "range")
POLICIES = ("bidirectional",) * 7 + ("upgrade", "downgrade", "disabled")
NONE, ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID, REBALANCE, ID_REQUIRED = 0, 22, 25, 27, 79


class ClassicClient:
    """One member of the classic protocol, as its client knows it."""

    def __init__(self, instance_id: str | None, names: list[str]) -> None:
        self.instance_id = instance_id
        self.names = names
        self.protocols: tuple[str, ...] = EAGER
        self.version = 9
        self.session_ms = 45_000
        self.rebalance_ms = 60_000
        self.member_id = ""
        self.generation = -1
        self.protocol: str | None = None
        self.phase = "out"
        """out, joining, joined, syncing or stable."""
        self.owned: dict[str, list[int]] = {}
        self.led: list[dict[str, Any]] = []
        """The members, if the client leads."""
        self.spoils = ""
        """What is wrong with what it sends: subscription, assignment, or nothing."""


class MixedWalk(Walk):
    """One walk of a seed through one group of both kinds."""

    def __init__(self, seed: int, ask: Callable[[Step], Answer], *, regexes: bool = True) -> None:
        super().__init__(seed, ask, regexes=regexes)
        self.classics: list[ClassicClient] = []
        self.partitions: dict[str, int] = {}
        self._number = 0
        self._waiting: dict[str, ClassicClient] = {}

    def _settings(self) -> dict[str, str]:
        sizes = self.chance.choice((("100", "100"),) * 6 + (("2", "100"), ("100", "2")))
        return super()._settings() | {
            "group.consumer.migration.policy": self.chance.choice(POLICIES),
            "group.initial.rebalance.delay.ms": "0",
            "group.max.size": sizes[0],
            "group.consumer.max.size": sizes[1],
        }

    def ask(self, step: Step) -> Answer:
        """Take a step, and let clients see what was answered to them."""
        if step["step"] == "topic":
            self.partitions[step["name"]] = len(step["replicas"])
        answer = super().ask(step)
        if step["step"] in ("classic join", "classic sync") and "error" in answer:
            client = self._waiting.pop(str(step["number"]))
            self._answered(client, step["step"], {"errorCode": answer["error"]})
        for number, response in answer.get("completed", {}).items():
            if number in self._waiting:
                waiting = self._waiting.pop(number)
                kind = "classic join" if waiting.phase == "joining" else "classic sync"
                self._answered(waiting, kind, response)
        return answer

    def _choices(self) -> Iterator[tuple[Callable[[], None], int]]:
        yield from super()._choices()
        yield self._join_classic, 3 if len(self.classics) < 4 else 0
        yield self._list, 1
        if self.classics:
            yield self._act, 24
            yield self._leave_classic, 1
            yield self._change_topics, 1
            yield self._mislead, 1
        if any(each.instance_id for each in (*self.clients, *self.resting)):
            yield self._become_classic, 2
        if any(each.instance_id for each in self.classics):
            yield self._become_modern, 1

    def _list(self) -> None:
        self.ask({"step": "list"})

    # --- A classic client's life ----------------------------------------------------------------

    def _join_classic(self) -> None:
        self._made += 1
        instance = f"static-{self._made % 3}" if self.chance.random() < 0.35 else None
        client = ClassicClient(instance, self._drawn_names())
        client.protocols = self.chance.choice((EAGER, COOPERATIVE))
        client.version = self.chance.choice((5, 9, 9))
        client.session_ms = self.chance.choice((7_000, 45_000))
        client.rebalance_ms = self.chance.choice((5_000, 60_000))
        if self.chance.random() < 0.04:
            client.spoils = self.chance.choice(("subscription", "assignment"))
        self.classics.append(client)
        self._act_as(client)

    def _act(self) -> None:
        self._act_as(self.chance.choice(self.classics))

    def _act_as(self, client: ClassicClient) -> None:
        match client.phase:
            case "out":
                self._send_join(client)
            case "joined":
                self._send_sync(client)
            case "stable":
                self._send_heartbeat(client)
            case _:
                self.ask({"step": "advance", "ms": 1})

    def _send_join(self, client: ClassicClient) -> None:
        if client.protocols == EAGER:
            client.owned = {}
        client.phase = "joining"
        request = {
            "groupId": "group",
            "sessionTimeoutMs": client.session_ms,
            "rebalanceTimeoutMs": client.rebalance_ms,
            "memberId": client.member_id,
            "groupInstanceId": client.instance_id,
            "protocolType": "consumer",
            "protocols": [
                {"name": name, "metadata": _text(self._subscription(client))}
                for name in client.protocols
            ],
            **({"reason": None} if client.version >= 8 else {}),
        }
        self._send("classic join", client, request, client="classic")

    def _send_sync(self, client: ClassicClient, **changes: Any) -> None:
        client.phase = "syncing"
        request = {
            "groupId": "group",
            "generationId": client.generation,
            "memberId": client.member_id,
            "groupInstanceId": client.instance_id,
            "protocolType": "consumer",
            "protocolName": client.protocol,
            "assignments": self._assignments(client),
            **changes,
        }
        self._send("classic sync", client, request, version=5)

    def _send(
        self, step: str, client_of: ClassicClient, request: dict[str, Any], **changes: Any
    ) -> None:
        self._number += 1
        self._waiting[str(self._number)] = client_of
        fields = {"step": step, "number": self._number, "version": client_of.version}
        self.ask(fields | changes | {"request": request})
        if self._regexes:
            self.ask({"step": "tasks"})
        self.ask({"step": "advance", "ms": 1})

    def _send_heartbeat(self, client: ClassicClient, **changes: Any) -> None:
        request = {
            "groupId": "group",
            "generationId": client.generation,
            "memberId": client.member_id,
            "groupInstanceId": client.instance_id,
            **changes,
        }
        answer = self.ask({"step": "classic heartbeat", "version": 4, "request": request})
        error = answer["error"] if "error" in answer else answer["response"]["errorCode"]
        self.ask({"step": "advance", "ms": 1})
        if not changes and error:
            self._failed(client, error)

    def _answered(self, client: ClassicClient, step: str, response: dict[str, Any]) -> None:
        error = response["errorCode"]
        if error:
            client.member_id = response.get("memberId") or client.member_id
            self._failed(client, error)
        elif step == "classic join":
            client.member_id = response["memberId"]
            client.generation = response["generationId"]
            client.protocol = response["protocolName"]
            client.led = response["members"]
            client.phase = "joined"
        else:
            self._assigned(client, base64.b64decode(response["assignment"]))

    def _failed(self, client: ClassicClient, error: int) -> None:
        client.phase = "out"
        if error in (REBALANCE, ID_REQUIRED):
            return
        client.owned = {}
        if error == UNKNOWN_MEMBER_ID:
            client.member_id = ""
        elif error != ILLEGAL_GENERATION and client in self.classics:
            self.classics.remove(client)

    def _assigned(self, client: ClassicClient, assignment: bytes) -> None:
        given: dict[str, list[int]] = {}
        if assignment:
            decoded = ConsumerProtocolAssignment.decode(assignment, 0, 2)[0]
            given = {each.topic: list(each.partitions) for each in decoded.assigned_partitions}
        lost = any(
            partition not in given.get(name, ())
            for name, partitions in client.owned.items()
            for partition in partitions
        )
        client.owned = given
        # A cooperative client revokes what it lost, and joins again to say so.
        client.phase = "out" if lost and client.protocols == COOPERATIVE else "stable"

    # --- What clients tell each other -----------------------------------------------------------

    def _subscription(self, client: ClassicClient) -> bytes:
        if client.spoils == "subscription":
            return b"\x00"
        version = 1 if client.version == 5 else 3
        owned = [
            TopicPartition(topic=name, partitions=list(parts))
            for name, parts in client.owned.items()
        ]
        body = ConsumerProtocolSubscription(topics=client.names, owned_partitions=owned)
        if version == 3:
            body.generation_id = client.generation
            body.rack_id = "east" if self._made % 4 == 0 else None
        return version.to_bytes(2, "big") + bytes(body.encode(version))

    def _assignments(self, client: ClassicClient) -> list[dict[str, str]]:
        """Give each topic's partitions to its subscribers in turn."""
        names_of = {}
        for each in client.led:
            data = base64.b64decode(each["metadata"])
            try:
                names_of[each["memberId"]] = ConsumerProtocolSubscription.decode(data, 0, 2)[0]
            except MalformedMessage:
                continue
        given: dict[str, dict[str, list[int]]] = {each: {} for each in names_of}
        for name in self.topics:
            readers = [each for each, found in names_of.items() if name in found.topics]
            for partition in range(self.partitions[name] if readers else 0):
                reader = given[readers[partition % len(readers)]]
                reader.setdefault(name, []).append(partition)
        user_data = b"custom" if client.spoils == "assignment" else None
        return [
            {"memberId": each, "assignment": _text(_assignment(topics, user_data))}
            for each, topics in given.items()
        ]

    # --- Leaving, switching, lying --------------------------------------------------------------

    def _leave_classic(self) -> None:
        client = self.classics.pop(self.chance.randrange(len(self.classics)))
        gone = [(client.member_id, client.instance_id)]
        if self.clients and self.chance.random() < 0.2:
            gone.append(("nobody", None))
        members = [
            {"memberId": member, "groupInstanceId": instance, "reason": None}
            for member, instance in gone
        ]
        request = {"groupId": "group", "members": members}
        self.ask({"step": "classic leave", "version": 5, "request": request})
        self.ask({"step": "advance", "ms": 1})

    def _change_topics(self) -> None:
        client = self.chance.choice(self.classics)
        if client.phase == "stable":
            client.names = self._drawn_names()
            self._send_join(client)

    def _become_classic(self) -> None:
        """Restart a static client of the consumer protocol as a classic one."""
        former = self.chance.choice(
            [each for each in (*self.clients, *self.resting) if each.instance_id]
        )
        for clients in (self.clients, self.resting):
            if former in clients:
                clients.remove(former)
        names = former.names if self.chance.random() < 0.7 else self._drawn_names()
        client = ClassicClient(former.instance_id, names)
        client.protocols = self.chance.choice((EAGER, COOPERATIVE))
        self.classics.append(client)
        self._send_join(client)

    def _become_modern(self) -> None:
        """Restart a static classic client with the consumer protocol."""
        former = self.chance.choice([each for each in self.classics if each.instance_id])
        self.classics.remove(former)
        self._made += 1
        member_id = self.chance.choice((f"member-{self._made}", former.member_id or "x"))
        client = Client(member_id, former.instance_id, former.names)
        self._enter(client)

    def _mislead(self) -> None:
        client = self.chance.choice(self.classics)
        if client.phase != "stable":
            return
        match self.chance.randrange(4):
            case 0:
                self._send_heartbeat(client, generationId=client.generation - 1)
            case 1:
                self._send_heartbeat(client, groupInstanceId="other")
            case 2:
                self._send_sync(client, protocolName="other")
            case _:
                self._send_sync(client, generationId=client.generation + 1)


def _assignment(topics: dict[str, list[int]], user_data: bytes | None) -> bytes:
    assigned = [Assigned(topic=name, partitions=parts) for name, parts in topics.items()]
    body = ConsumerProtocolAssignment(assigned_partitions=assigned, user_data=user_data)
    return b"\x00\x01" + bytes(body.encode(1))


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
