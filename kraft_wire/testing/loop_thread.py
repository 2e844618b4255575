"""A thread with an event loop of its own, and calls into it from the test's thread."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

__all__ = ["LoopThread"]

T = TypeVar("T")


class LoopThread:
    """Runs until `stop`; a daemon, so that a test that does not stop it ends all the same."""

    def __init__(self, name: str) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
        finally:
            self.loop.close()

    def call(self, function: Callable[..., T], *arguments: object) -> T:
        """Call a function on the loop, wait for it, and return what it returns or raises."""
        if threading.current_thread() is self._thread:
            return function(*arguments)
        done: Future[T] = Future()

        def run() -> None:
            try:
                done.set_result(function(*arguments))
            except BaseException as error:  # noqa: BLE001  # raised where it was asked for
                done.set_exception(error)

        self.loop.call_soon_threadsafe(run)
        return done.result()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop, and wait for it."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result()

    def stop(self) -> None:
        """End the loop and the thread."""
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
