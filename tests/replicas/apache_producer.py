"""Apache's own producer, as a Java program that is told how far it may go, and tells each answer.

As it is by default: idempotent, up to five requests under way at a connection. Standard input
grants records, standard output has the promises, what it says of ids and epochs goes to its log.
"""

from __future__ import annotations

import subprocess
import threading
import time
from typing import IO

from tests.apache.java_process import java_command
from tests.replicas.load import BLOCK, LIFE, PADDING_MAX, Load, Order

HEAP_MB = 128
GRANTS_EVERY_S = 0.02
ENDS_WITHIN_S = 10.0


class ApacheLoad(Load):
    """One of Apache's producers, in a Java machine of its own."""

    def __init__(self, order: Order) -> None:
        super().__init__(order)
        self._command = _command(order)

    def _send_all(self) -> None:
        with self.order.log.open("ab") as log:
            process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log
            )
        assert process.stdin is not None
        assert process.stdout is not None
        answers = threading.Thread(target=self._hear, args=(process.stdout,), daemon=True)
        answers.start()
        try:
            self._grant(process.stdin)
            while answers.is_alive() and not self._given_up.is_set():
                answers.join(GRANTS_EVERY_S)
            if not self._given_up.is_set() and process.wait(ENDS_WITHIN_S):
                self._fail(f"it ended with {process.returncode}: {self.order.log}")
        finally:
            process.kill()
            process.wait()
            answers.join(ENDS_WITHIN_S)
            process.stdout.close()

    def _grant(self, grants: IO[bytes]) -> None:
        """Let it send as its pace says; what is granted counts as sent."""
        with grants:
            while self._wants_more:
                granted = min(self.order.pace.granted, self.order.records)
                if granted > self.sent:
                    self.sent = granted
                    grants.write(b"%d\n" % granted)
                    grants.flush()
                time.sleep(GRANTS_EVERY_S)

    def _hear(self, answers: IO[bytes]) -> None:
        for line in answers:
            number, told = line.decode().split(" ", 1)
            if told.startswith("!"):
                self._fail(f"record {number}: {told[1:].strip()}")
            else:
                self._acknowledge(int(number), int(told))


def _command(order: Order) -> list[str]:
    given = (order.bootstrap, order.topic, order.partitions, order.number, order.kind.codec)
    return java_command(
        "judge.NumberedProducer",
        [str(each) for each in (*given, BLOCK, LIFE, PADDING_MAX)],
        heap_mb=HEAP_MB,
        flags=["-Djudge.level=INFO"],
    )
