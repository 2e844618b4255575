"""Run the scenarios with clients, several at once, and collect what came of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic

from tests.clients.registry import Client
from tests.clients.running import DETAIL_MAX, Result
from tests.clients.transactions.driver import ClientError, Driver, DriverFailed
from tests.clients.transactions.registry import (
    CANNOT_WHERE_BROKERS_RESTART,
    CLIENTS,
    READ_BY,
)
from tests.clients.transactions.scenarios import SCENARIOS, ScenarioFailed, World

__all__ = ["NODE_SETTINGS", "Ground", "Size", "run_all"]

NODE_SETTINGS = {
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    "group.initial.rebalance.delay.ms": "0",
}
"""What makes time-outs and groups quick."""
CREATION_S = 30.0
AT_ONCE = 2
"""Clients: as many as the machine has cores."""

Table = dict[str, dict[str, Result]]


@dataclass(frozen=True, slots=True)
class Size:
    """How much the scenarios move."""

    moved: int = 60
    large: int = 2_000
    rounds: int = 1


class Ground:
    """The broker or cluster that the scenarios run on."""

    def __init__(self, bootstrap: str, home: Path, replicas: int = 1) -> None:
        self.bootstrap = bootstrap
        self.home = home
        self.brokers_restart = replicas > 1
        self._replicas = replicas
        self._admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})

    def create(self, topic: str, partitions: int) -> None:
        """Create a topic; again while a broker is about to stop, on which nothing is placed."""
        deadline = time.monotonic() + CREATION_S
        while True:
            wanted = [NewTopic(topic, partitions, self._replicas)]
            try:
                self._admin.create_topics(wanted)[topic].result(CREATION_S)
                return
            except Exception as error:
                is_there = "TOPIC_ALREADY_EXISTS" in str(error)
                if self.brokers_restart and is_there:
                    return
                if not self.brokers_restart or time.monotonic() > deadline:
                    raise
            time.sleep(0.2)


def run_all(
    clients: Iterable[Client],
    ground: Ground,
    scenarios: Sequence[str] = tuple(SCENARIOS),
    *,
    size: Size = Size(),
    say: Callable[[str], None] = lambda line: None,
) -> Table:
    """All scenarios with all clients."""
    chosen = list(clients)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        work = [pool.submit(_run_client, each, ground, scenarios, size, say) for each in chosen]
        return {client.name: done.result() for client, done in zip(chosen, work, strict=True)}


def _run_client(
    client: Client,
    ground: Ground,
    scenarios: Sequence[str],
    size: Size,
    say: Callable[[str], None],
) -> dict[str, Result]:
    results: dict[str, Result] = {}
    cannot = dict(client.not_applicable)
    if ground.brokers_restart:
        cannot |= {
            name: reason
            for (who, name), reason in CANNOT_WHERE_BROKERS_RESTART.items()
            if who == client.name
        }
    wanted = [name for name in scenarios if name not in cannot]
    for name in scenarios:
        if name in cannot:
            results[name] = Result("not applicable", cannot[name])
    for number in range(size.rounds):
        with ExitStack() as stack:
            driver = stack.enter_context(_driver(client, ground))
            reader = driver
            if client.name in READ_BY:
                reader = stack.enter_context(_driver(CLIENTS[READ_BY[client.name]], ground))
            for name in wanted:
                began = time.monotonic()
                world = World(driver, ground.create, f"{client.name}-{name}-{number}", reader)
                world.brokers_restart = ground.brokers_restart
                world.moved, world.large = size.moved, size.large
                detail = _problem(SCENARIOS[name], world)
                seconds = round(time.monotonic() - began, 1)
                say(f"{world.name}: {detail or 'ok'} after {seconds} s")
                if name not in results or results[name].green:
                    results[name] = Result("fail" if detail else "ok", detail, seconds)
                if detail.startswith(DriverFailed.__name__):
                    break  # what it answers now is late
    for name in wanted:
        results.setdefault(name, Result("fail", "not run: the driver had failed before"))
    return results


def _driver(client: Client, ground: Ground) -> Driver:
    return Driver(client.command(), ground.bootstrap, ground.home / f"{client.name}.log")


def _problem(scenario: Callable[[World], None], world: World) -> str:
    """What is wrong, in words; the empty string where nothing is."""
    try:
        scenario(world)
    except (ScenarioFailed, ClientError, DriverFailed) as problem:
        return f"{type(problem).__name__}: {problem}"[:DETAIL_MAX]
    return ""
