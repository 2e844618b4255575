"""The process whose instructions `benchmarks.instructions` counts; it runs under cachegrind.

`python -m benchmarks.instructions_forks DIRECTORY REQUESTS NAME...`: for each case a node is
prepared, and two forks answer requests, the first one as many as given, the second one twice as
many. Cachegrind writes a file with the count of each fork. The difference contains neither the
start nor the preparation. The garbage collector is off: a collection belongs to no request in
particular. Prints a JSON object: case to process ids.
"""

import gc
import json
import os
import sys
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

from benchmarks.instructions_cases import CASES
from benchmarks.instructions_node import InProcessNode

__all__: list[str] = []


def _forked(node: InProcessNode, frames: Iterable[bytes], count: int) -> int:
    """Answer so many requests in a fork; return its process id."""
    peer = node.peer()
    child = os.fork()
    if child == 0:
        os._exit(node.run(peer, islice(frames, count)) != count)
    _, status = os.waitpid(child, 0)
    assert status == 0, f"process {child} did not answer {count} requests"
    return child


def main() -> None:
    """Run the cases that are named."""
    home, count, names = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    gc.disable()
    processes = {}
    for number, name in enumerate(names):
        node = InProcessNode(home / str(number))
        frames = CASES[name](node, 2 * count)
        processes[name] = [_forked(node, frames, times * count) for times in (1, 2)]
    json.dump(processes, sys.stdout)
    sys.stdout.flush()
    os._exit(0)  # the nodes need no stop


if __name__ == "__main__":
    main()
