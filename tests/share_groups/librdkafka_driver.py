"""Share consumers of librdkafka until the end of input; the same lines as `judge.ShareDriver`.

`python -m tests.share_groups.librdkafka_driver BOOTSTRAP GROUP MEMBERS SEED`: the topic has the
name of the group.
"""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Iterable

from confluent_kafka import KafkaException, ShareConsumer, cimpl

POLL_S = 0.2
RELEASE, ACCEPT = cimpl.SHARE_ACKNOWLEDGE_TYPE_RELEASE, cimpl.SHARE_ACKNOWLEDGE_TYPE_ACCEPT
COMMIT_S = 60.0


class Lines:
    """Standard output; the lines of one call stay together."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def say(self, lines: Iterable[str]) -> None:
        """Print lines."""
        with self._lock:
            sys.stdout.writelines(f"{each}\n" for each in lines)
            sys.stdout.flush()


def member(
    settings: dict[str, object], chance: random.Random, lines: Lines, is_over: threading.Event
) -> None:
    """Read, release one record in ten and accept the others, until it is over."""
    consumer = ShareConsumer(settings)
    consumer.subscribe([str(settings["group.id"])])
    while not is_over.is_set():
        accepted = []
        found = [each for each in consumer.poll(POLL_S) if each.error() is None]
        lines.say(f"d {int(each.value())} {each.delivery_count()}" for each in found)
        for each in found:
            is_released = chance.randrange(10) == 0
            consumer.acknowledge(each, RELEASE if is_released else ACCEPT)
            if not is_released:
                accepted.append((each.partition(), int(each.value())))
        confirmed = committed(consumer) if found else set()
        lines.say(f"{'a' if where in confirmed else 'u'} {number}" for where, number in accepted)
    consumer.close()


def committed(consumer: ShareConsumer) -> set[int]:
    """Send the acknowledgements; return the partitions in which they count."""
    try:
        results = consumer.commit_sync(COMMIT_S)
    except KafkaException:
        return set()
    return {place.partition for place, error in results.items() if error is None}


def main() -> int:
    """Run the members."""
    bootstrap, group, members, seed = sys.argv[1:]
    settings: dict[str, object] = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "share.acknowledgement.mode": "explicit",
        "log_level": 0,
    }
    lines, is_over = Lines(), threading.Event()
    threads = [
        threading.Thread(
            target=member, args=(settings, random.Random(int(seed) + number), lines, is_over)
        )
        for number in range(int(members))
    ]
    for each in threads:
        each.start()
    sys.stdin.read()
    is_over.set()
    for each in threads:
        each.join()
    return 0


if __name__ == "__main__":
    sys.exit(main())
