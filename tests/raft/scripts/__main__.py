"""`python -m tests.raft.scripts [--rewrite]`: compare every story with its record, or write it."""

import sys

from tests.raft.scripts.story import SCRIPTS, played

changed = []
for path in SCRIPTS:
    recorded = path.read_text(encoding="utf-8")
    now = played(recorded)
    if now != recorded:
        changed.append(path.name)
        if sys.argv[1:] == ["--rewrite"]:
            path.write_text(now, encoding="utf-8")
print(f"{len(SCRIPTS)} stories, {len(changed)} differ: {' '.join(changed)}")
sys.exit(bool(changed) and sys.argv[1:] != ["--rewrite"])
