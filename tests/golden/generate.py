"""Have Apache's classes make vectors: into a scratch file, or as the committed corpus.

``python -m tests.golden.generate`` rewrites the corpus: three vectors and one malformed input
per message and version, from one fixed seed, a file per kind and message.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

from tests.apache import jars
from tests.apache.java_process import JavaFailed, java_command
from tests.golden.vectors import CORPUS

GENERATE_SECONDS_MAX = 900
CORPUS_SEED = 4_3_1
HEAP_MB = 768


def generate(path: Path, *, seed: int, per_version: int, malformed: int, large: bool) -> None:
    """Write vectors of one seed to ``path``; the same arguments write the same file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    size = "large" if large else "small"
    arguments = [str(seed), str(per_version), str(malformed), size]
    command = java_command("judge.Golden", arguments, heap_mb=HEAP_MB)
    with path.open("wb") as out:
        done = subprocess.run(
            command, stdout=out, stderr=subprocess.PIPE, check=False, timeout=GENERATE_SECONDS_MAX
        )
    if done.returncode != 0:
        raise JavaFailed(done.stderr.decode(errors="replace")[-4000:])


def rewrite_corpus() -> int:
    """Write the committed corpus anew and give the number of its files."""
    scratch = jars.CHECKOUT / "var" / "golden" / "corpus.jsonl"
    generate(scratch, seed=CORPUS_SEED, per_version=3, malformed=1, large=False)
    files: dict[Path, list[str]] = defaultdict(list)
    with scratch.open(encoding="utf-8") as lines:
        for line in lines:
            vector = json.loads(line)
            files[CORPUS / vector["kind"] / f"{vector['name']}.jsonl"].append(line)
    origin = {
        "origin": f"judge.Golden over the published jars of Apache Kafka {jars.RELEASE}",
        "seed": CORPUS_SEED,
    }
    for path, content in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(origin) + "\n" + "".join(content), encoding="utf-8")
    return len(files)


if __name__ == "__main__":
    print(f"{rewrite_corpus()} files under {CORPUS}")
    sys.exit(0)
