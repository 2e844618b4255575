"""Records the stories anew: `python -m tests.sim.scripts --rewrite`. Read the diff afterwards."""

import sys
from pathlib import Path

from kraft_wire.sim.runs.story import Story

SCRIPTS = sorted(Path(__file__).parent.glob("*.txt"))


def main(arguments: list[str]) -> int:
    """Play all stories; with --rewrite record them, else tell which ones differ."""
    different = []
    for path in SCRIPTS:
        recorded = path.read_text(encoding="utf-8")
        now = Story(recorded).text
        if now != recorded:
            different.append(path.stem)
            if "--rewrite" in arguments:
                path.write_text(now, encoding="utf-8")
    print(f"{len(SCRIPTS)} stories, {len(different)} different: {', '.join(different) or '-'}")
    return int(bool(different) and "--rewrite" not in arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
