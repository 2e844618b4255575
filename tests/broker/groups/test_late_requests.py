"""A story is answered alike however late the requests arrive whose answers it does not wait for.

What a story takes for granted about the order of two connections' requests, no broker promises: it
would be told to Apache's coordinator, now and then, as another story.
"""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass
from typing import Any

import pytest

from kraft_wire.wire.message import Message
from tests.broker.groups.doors import VirtualDoor, VirtualReply, answers_of
from tests.broker.groups.harness import Harness
from tests.broker.groups.stories import STORIES, TOPIC, Story

TELLINGS = 20


@dataclass
class LateReply:
    """An answer to a request that is still on its way; others may overtake it."""

    door: LateDoor
    connection: int
    delivered: VirtualReply | None = None

    @property
    def response(self) -> Any:
        while self.delivered is None:
            self.door.deliver_one()
        while self.delivered.is_parked and self.door.deliver_one():
            pass
        return self.delivered.response

    @property
    def error(self) -> int:
        return int(self.response.error_code)

    @property
    def is_answered(self) -> bool:
        return self.delivered is not None and not self.delivered.is_parked


class LateDoor:
    """Our coordinator behind connections of which each keeps its own order, and no other.

    As with Apache's broker, a connection's next request is taken up after the last one's answer.
    """

    def __init__(self, door: VirtualDoor, random_source: random.Random) -> None:
        self._door = door
        self._random_source = random_source
        self._under_way: dict[int, deque[tuple[LateReply, Message, int, str | None]]] = {}

    def send(
        self,
        request: Message,
        version: int,
        *,
        client_id: str | None = "client",
        connection: int = 1,
    ) -> LateReply:
        reply = LateReply(self, connection)
        queue = self._under_way.setdefault(connection, deque())
        queue.append((reply, request, version, client_id))
        return reply

    def deliver_one(self) -> bool:
        """Let any request arrive that can, and say whether one did; where none can, time passes."""
        for queue in self._under_way.values():
            if queue and queue[0][0].is_answered:
                queue.popleft()
        able = [
            queue[0] for queue in self._under_way.values() if queue and not queue[0][0].delivered
        ]
        if not able:
            self._door.harness.advance(100)
            return False
        reply, request, version, client_id = self._random_source.choice(able)
        reply.delivered = self._door.send(
            request, version, client_id=client_id, connection=reply.connection
        )
        return True


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_a_story_does_not_depend_on_what_it_does_not_wait_for(story: Story) -> None:
    door = VirtualDoor(Harness(offsets_partitions=4))
    expected = answers_of(story, door, door.create_topic(TOPIC))
    for seed in range(TELLINGS):
        door = VirtualDoor(Harness(offsets_partitions=4))
        topic_id = door.create_topic(TOPIC)
        assert answers_of(story, LateDoor(door, random.Random(seed)), topic_id) == expected, seed
