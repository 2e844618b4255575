"""The event loop that a node runs on: who is called, when, and in which order."""

import os
import select
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from kraft_wire.cli.loop import EventLoop


@pytest.fixture(params=["epoll", "poll"])
def loop(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[EventLoop]:
    if request.param == "poll":
        monkeypatch.delattr(select, "epoll", raising=False)
    made = EventLoop()
    yield made
    made.close()


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    near, far = socket.socketpair()
    with near, far:
        near.setblocking(False)
        yield near, far


def test_what_is_put_off_comes_after_what_is_ready_and_before_the_end_of_the_wake_up(
    loop: EventLoop, pair: tuple[socket.socket, socket.socket]
) -> None:
    near, far = pair
    seen: list[str] = []

    def readable() -> None:
        seen.append(near.recv(1).decode())
        loop.call_soon(seen.append, "soon")
        loop.stop()

    loop.before_wait = lambda: seen.append("wait")
    loop.add_reader(near.fileno(), readable)
    far.send(b"r")
    loop.run_forever()
    assert seen == ["r", "soon", "wait"]


def test_timers_come_in_the_order_of_their_times_and_cancelled_ones_not_at_all(
    loop: EventLoop,
) -> None:
    seen: list[str] = []
    loop.call_later(0.03, loop.stop)
    loop.call_later(0.02, seen.append, "second")
    loop.call_later(0.01, seen.append, "first")
    loop.call_later(0.015, seen.append, "never").cancel()
    begun = loop.time()
    loop.run_forever()
    assert seen == ["first", "second"]
    assert loop.time() - begun >= 0.03


def test_a_timer_that_sets_itself_anew_at_once_lets_sockets_be_served(
    loop: EventLoop, pair: tuple[socket.socket, socket.socket]
) -> None:
    near, far = pair

    def again() -> None:
        loop.call_later(-1.0, again)
        loop.call_soon(again_soon)

    def again_soon() -> None:
        loop.call_soon(again_soon)

    loop.add_reader(near.fileno(), loop.stop)
    again()
    far.send(b"x")
    loop.run_forever()


def test_a_loop_that_waits_is_woken_by_another_thread_and_by_a_signal(loop: EventLoop) -> None:
    timer = threading.Timer(0.02, loop.call_soon_threadsafe, [loop.stop])
    timer.start()
    loop.run_forever()
    timer.join()

    before = signal.signal(signal.SIGUSR1, lambda *_: loop.call_soon_threadsafe(loop.stop))
    try:
        timer = threading.Timer(0.02, os.kill, [os.getpid(), signal.SIGUSR1])
        timer.start()
        loop.run_forever()
        timer.join()
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_more_wake_ups_than_the_pipe_holds_lose_no_call(loop: EventLoop) -> None:
    seen: list[int] = []
    for number in range(100_000):
        loop.call_soon_threadsafe(seen.append, number)
    loop.call_soon_threadsafe(loop.stop)
    loop.run_forever()
    assert seen == list(range(100_000))


def test_reading_and_writing_are_watched_apart(
    loop: EventLoop, pair: tuple[socket.socket, socket.socket]
) -> None:
    near, far = pair
    seen: list[str] = []
    descriptor = near.fileno()

    def note(word: str, remove: Callable[[int], None]) -> None:
        seen.append(word)
        remove(descriptor)
        loop.call_later(0.01, loop.stop)

    loop.add_reader(descriptor, lambda: note("read", loop.remove_reader))
    loop.add_writer(descriptor, lambda: note("write", loop.remove_writer))
    loop.run_forever()
    assert seen == ["write"], "nothing is there to read"
    far.send(b"x")
    loop.run_forever()
    assert seen == ["write", "read"]
    loop.remove_reader(descriptor)
    loop.call_later(0.01, loop.stop)
    loop.run_forever()
    assert seen == ["write", "read"]


def test_the_end_of_a_peer_is_told_to_who_only_writes(
    loop: EventLoop, pair: tuple[socket.socket, socket.socket]
) -> None:
    near, far = pair
    near.send(b"x")
    while True:
        try:
            near.send(bytes(65_536))
        except BlockingIOError:
            break
    loop.add_writer(near.fileno(), loop.stop)
    far.close()
    loop.run_forever()


def test_all_of_many_ready_sockets_are_served_before_one_is_served_twice(loop: EventLoop) -> None:
    served: list[int] = []
    with ExitStack() as opened:
        for number in range(50):
            near, far = socket.socketpair()
            opened.enter_context(near)
            opened.enter_context(far)
            far.send(b"x")  # and never read: it stays ready
            loop.add_reader(near.fileno(), lambda number=number: served.append(number))  # type: ignore[misc]  # a default binds the number
        loop.before_wait = lambda: loop.stop() if len(served) >= 100 else None
        loop.run_forever()
    assert sorted(served[:50]) == list(range(50))


def test_calls_beside_the_loop_keep_their_order_and_their_outcomes(loop: EventLoop) -> None:
    threads: list[int] = []
    seen: list[int] = []

    def work(number: int) -> int:
        threads.append(threading.get_ident())
        return number

    for number in range(3):
        loop.thread.run(lambda number=number: work(number), seen.append)  # type: ignore[misc]  # a default binds the number
    loop.thread.run(lambda: None, lambda _: loop.stop())
    loop.run_forever()
    assert seen == [0, 1, 2]
    assert len(set(threads)) == 1
    assert threads[0] != threading.get_ident()


def test_what_is_raised_beside_the_loop_ends_the_loop(loop: EventLoop) -> None:
    def broken() -> None:
        raise ZeroDivisionError("beside")

    loop.thread.run(broken, lambda _: None)
    with pytest.raises(ZeroDivisionError, match="beside"):
        loop.run_forever()


def test_the_thread_is_waited_for_at_the_end(loop: EventLoop) -> None:
    done: list[int] = []
    go = threading.Event()
    threading.Timer(0.05, go.set).start()

    def work() -> None:
        go.wait()
        done.append(1)

    loop.thread.run(work, lambda _: None)
    loop.thread.end()
    assert done == [1]
