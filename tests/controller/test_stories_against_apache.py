"""Apache's own controller answers random stories of a cluster as ours does, and writes the same."""

import os
import subprocess
from pathlib import Path

import pytest

from kraft_wire.wire.generated.registry import response_class
from kraft_wire.wire.message import Message, Struct
from tests.apache import jars
from tests.apache.java_process import LEAN_FLAGS
from tests.controller.cluster_story import Story
from tests.controller.story_of_brokers import Told

STORIES = 24
STEPS = 60
SOURCE = Path(__file__).with_name("ControllerJudge.java")


def judged(stories: list[Story], classes: Path) -> list[str]:
    """Return what Apache's controller answers; it is asked from inside its package."""
    compiled = ["javac", "-nowarn", "-d", str(classes), "-cp", jars.classpath(), str(SOURCE)]
    path = os.pathsep.join([str(classes), jars.classpath()])
    subprocess.run(compiled, check=True, capture_output=True)
    done = subprocess.run(
        ["java", *LEAN_FLAGS, "-cp", path, "org.apache.kafka.controller.ControllerJudge"],
        input="".join(f"{line}\n" for story in stories for line in story.lines),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return [line for line in done.stdout.splitlines() if "|" in line or line.startswith("error")]


def comparable(part: object) -> object:
    """Return an answer without its words, and without the order of a hash table."""
    if isinstance(part, Struct):
        fields = [name for name in part.field_names if name != "error_message"]
        return tuple((name, comparable(getattr(part, name))) for name in fields)
    if isinstance(part, list):
        items = [comparable(each) for each in part]
        return sorted(items, key=repr) if part and isinstance(part[0], Struct) else items
    return bytes(part) if isinstance(part, memoryview) else part


def codes(answer: Message) -> list[int]:
    """Return the errors of the resources, else that of the whole."""
    parts = getattr(answer, "responses", [answer])
    return [int(each.error_code) for each in parts]


def ours(told: Told, line: str) -> tuple[object, object]:
    """Return our answer and Apache's, as far as they can be compared."""
    head = line.partition("|")[0]
    answer = told.answer
    if told.request is None or answer is None:
        return None, None
    if head.startswith("error"):
        return int(getattr(answer, "error_code", 0)), int(head.split()[1])
    if head.startswith("codes"):
        return codes(answer), [int(each) for each in head.split()[1:]]
    kind = response_class(told.request.API_KEY)
    sent, _ = kind.decode(answer.encode(told.version), told.version, 0)
    theirs, _ = kind.decode(bytes.fromhex(head), told.version, 0)
    return comparable(sent), comparable(theirs)


@pytest.mark.java
def test_apaches_controller_answers_and_writes_what_ours_does(tmp_path: Path) -> None:
    stories = [Story(seed, STEPS) for seed in range(STORIES)]
    lines = iter(judged(stories, tmp_path))
    asked: set[int] = set()
    for seed, story in enumerate(stories):
        for number, told in enumerate(story.told):
            line = next(lines)
            place = (seed, number, told.request)
            mine, theirs = ours(told, line)
            assert mine == theirs, place
            written = [each for each in line.partition("|")[2].split(",") if each]
            assert sorted(told.records) == sorted(written), place
            asked.add(-1 if told.request is None else told.request.API_KEY)
    assert next(lines, None) is None
    assert sorted(asked) == [-1, 37, 43, 44, 45, 46, 56, 57, 62, 63, 64, 73]
