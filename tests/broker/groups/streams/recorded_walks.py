"""Walks of streams groups that Apache's group manager has taken.

`python -m tests.broker.groups.streams.recorded_walks` records them again, in `walks.jsonl` beside
this file.
"""

from __future__ import annotations

import json
from pathlib import Path

from tests.broker.groups.consumer.recorded_walks import fresh
from tests.broker.groups.streams.walk import StreamsWalk

WALKS = Path(__file__).parent / "walks.jsonl"
STEPS = dict.fromkeys((0, 1, 8, 12, 13, 17, 22, 31), 60)


if __name__ == "__main__":
    walks = fresh(STEPS, StreamsWalk)
    WALKS.write_text("".join(json.dumps(step) + "\n" for walk in walks for step in walk))
