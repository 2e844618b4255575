"""kcat as an adapter: every operation is a process.

kcat has no admin commands and cannot stamp records, so topics are created, and records with chosen
timestamps produced, by confluent-kafka; everything that is judged here goes through kcat.
"""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import IO

from tests.clients.python import security
from tests.clients.python.adapter import (
    LEADERS_MOVE,
    OPERATION_SECONDS,
    SESSION_MS,
    Adapter,
    Consumed,
    Member,
    Produced,
    Reader,
    ScenarioFailed,
    wait_until,
)
from tests.clients.python.confluent_adapter import ConfluentAdapter

MEMBER = ("-X", "auto.offset.reset=earliest", "-X", f"session.timeout.ms={SESSION_MS}")
FORMAT = "%p %o %K %S\n%k%s%h\n"
FILE_BYTES_MIN = 100_000
KEY_DELIMITER = "\x1e"
MESSAGE_DELIMITER = "\x1f"
AWAY = ("Connection refused", "Broker transport failure", "Disconnected", "brokers are down")
"""What librdkafka says of a connection that it will try again."""

Shape = tuple[int | None, tuple[tuple[str, bytes | None], ...], bool, bool]


def read_one(stream: IO[bytes]) -> Consumed | None:
    """One record in ``FORMAT``, None at the end of the stream."""
    head = stream.readline().split()
    if len(head) != 4:
        return None
    partition, offset, key_bytes, value_bytes = map(int, head)
    key = stream.read(key_bytes) if key_bytes >= 0 else None
    value = stream.read(value_bytes) if value_bytes >= 0 else None
    return Consumed(partition, offset, value, key, headers_of(stream.readline()[:-1]))


def headers_of(line: bytes) -> list[tuple[str, bytes | None]]:
    """``a=1,b=`` as pairs."""
    pairs = [pair.partition(b"=") for pair in line.split(b",") if pair]
    return [(name.decode(), value) for name, _, value in pairs]


def complaints_in(text: str) -> list[str]:
    """The lines that tell of an error; a broker that is away is none where brokers restart."""
    found = [line for line in text.splitlines() if "ERROR" in line or "failed" in line]
    return [line for line in found if not (LEADERS_MOVE and any(word in line for word in AWAY))]


class KcatProcess:
    """A running kcat consumer; records and remarks are collected as they come."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self.received: list[Consumed] = []
        self.remarks: list[str] = []
        self._process = subprocess.Popen(
            ["kcat", *security.kcat(), *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for work in (self._read_records, self._read_remarks):
            threading.Thread(target=work, daemon=True).start()

    def _read_records(self) -> None:
        assert self._process.stdout is not None
        while (record := read_one(self._process.stdout)) is not None:
            self.received.append(record)

    def _read_remarks(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self.remarks.append(line.decode(errors="replace").strip())

    def stop(self) -> None:
        """SIGTERM, which makes kcat leave its group."""
        self._process.terminate()
        self._process.wait(OPERATION_SECONDS)


class KcatMember(Member):
    """A ``kcat -G`` process."""

    def __init__(self, process: KcatProcess) -> None:
        super().__init__()
        self._process = process
        self.received = process.received

    def assignment(self) -> set[int]:
        for remark in reversed(self._process.remarks):
            if "rebalanced" in remark:
                assigned = remark.partition("assigned:")[2]
                return {int(number) for number in re.findall(r"\[(\d+)\]", assigned)}
        return set()

    def leave(self) -> None:
        self._process.stop()


class KcatReader(Reader):
    """``kcat -C -o beginning`` or ``-o end``; a seek is a new process."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._command = ["-b", bootstrap, "-C", "-u", "-t", topic, "-p", "0", "-f", FORMAT]
        self._process: KcatProcess | None = None
        self._taken = 0

    def _start(self, where: str) -> KcatProcess:
        self.close()
        self._process = KcatProcess([*self._command, "-o", where])
        self._taken = 0
        return self._process

    def seek_to_beginning(self) -> None:
        self._start("beginning")

    def seek_to_end(self) -> None:
        process = self._start("end")
        reached = "kcat says that it reached the end"
        wait_until(lambda: any("Reached end" in r for r in process.remarks), reached)

    def next(self) -> Consumed:
        process = self._process
        assert process is not None
        wait_until(lambda: len(process.received) > self._taken, "one more record")
        self._taken += 1
        return process.received[self._taken - 1]

    def close(self) -> None:
        if self._process is not None:
            self._process.stop()


class KcatAdapter(Adapter):
    """Producing, consuming, groups and queries with kcat."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        self._set_up = ConfluentAdapter(bootstrap)

    def _run(self, arguments: Sequence[str], data: bytes = b"") -> bytes:
        done = subprocess.run(
            ["kcat", "-b", self.bootstrap, *security.kcat(), *arguments],
            input=data,
            capture_output=True,
            check=False,
            timeout=OPERATION_SECONDS,
        )
        said = done.stderr.decode(errors="replace")
        if done.returncode != 0 or complaints_in(said):
            raise ScenarioFailed(security.told_by(said))
        return done.stdout

    def brokers(self) -> list[str]:
        found = json.loads(self._run(["-L", "-J"]))
        return [broker["name"] for broker in found["brokers"]]

    def partitions(self, topic: str) -> int | None:
        for found in json.loads(self._run(["-L", "-J"]))["topics"]:
            if found["topic"] == topic:
                return len(found["partitions"])
        return None

    def create_topic(self, topic: str, partitions: int, configs: dict[str, str]) -> None:
        self._set_up.create_topic(topic, partitions, configs)

    def produce(
        self,
        topic: str,
        records: Sequence[Produced],
        *,
        codec: str = "none",
        idempotent: bool = LEADERS_MOVE,
    ) -> None:
        if any(record.timestamp_ms for record in records):
            self._set_up.produce(topic, records)
            return
        command = ["-P", "-t", topic, "-z", codec, "-X", "message.max.bytes=2000000"]
        if idempotent:
            command += ["-X", "enable.idempotence=true"]
        by_place = sorted(records, key=lambda r: -1 if r.partition is None else r.partition)
        for shape, alike in groupby(by_place, self._shape):
            self._produce_alike(command, shape, list(alike))

    @staticmethod
    def _shape(record: Produced) -> Shape:
        """What the records of one kcat process share, because it is set on its command line."""
        return (
            record.partition,
            tuple(record.headers),
            record.key is not None,
            record.value is None,
        )

    def _produce_alike(
        self,
        command: Sequence[str],
        shape: Shape,
        records: Sequence[Produced],
    ) -> None:
        partition, headers, keyed, null = shape
        arguments = [*command, "-p", str(-1 if partition is None else partition)]
        for name, value in headers:
            arguments += ["-H", f"{name}=" + (value or b"").decode(errors="surrogateescape")]
        if max(len(record.value or b"") for record in records) >= FILE_BYTES_MIN:
            self._produce_files(arguments, records)
            return
        if null:
            arguments.append("-Z")
        if keyed:
            arguments += ["-K", KEY_DELIMITER]
        lines = [
            (b"" if record.key is None else record.key + KEY_DELIMITER.encode())
            + (record.value or b"")
            + MESSAGE_DELIMITER.encode()
            for record in records
        ]
        self._run([*arguments, "-D", MESSAGE_DELIMITER], b"".join(lines))

    def _produce_files(self, arguments: Sequence[str], records: Sequence[Produced]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            paths = []
            for number, record in enumerate(records):
                path = Path(folder) / f"{number:06d}"
                path.write_bytes(record.value or b"")
                paths.append(str(path))
            self._run([*arguments, *paths])

    def consume(self, topic: str, partitions: Sequence[int], count: int) -> list[Consumed]:
        arguments = ["-C", "-q", "-t", topic, "-o", "beginning", "-c", str(count), "-f", FORMAT]
        if len(partitions) == 1:
            arguments += ["-p", str(partitions[0])]
        return self._parse(self._run(arguments))

    def consume_in_group(self, topic: str, group: str, count: int) -> list[Consumed]:
        settings = [*MEMBER, "-c", str(count), "-q", "-f", FORMAT]
        return self._parse(self._run([*settings, "-G", group, topic]))

    @staticmethod
    def _parse(output: bytes) -> list[Consumed]:
        with tempfile.TemporaryFile() as stream:
            stream.write(output)
            stream.seek(0)
            return list(iter(lambda: read_one(stream), None))

    def member(self, topic: str, group: str) -> Member:
        settings = ["-u", *MEMBER, "-f", FORMAT]
        return KcatMember(KcatProcess(["-b", self.bootstrap, *settings, "-G", group, topic]))

    def offset_for_timestamp(self, topic: str, timestamp_ms: int) -> int | None:
        answer = self._run(["-Q", "-t", f"{topic}:0:{timestamp_ms}"]).decode()
        found = re.search(r"offset (-?\d+)", answer)
        if found is None:
            raise ScenarioFailed(f"kcat -Q says {answer!r}")
        return None if int(found[1]) < 0 else int(found[1])

    def reader(self, topic: str) -> Reader:
        return KcatReader(self.bootstrap, topic)


ADAPTER = KcatAdapter
