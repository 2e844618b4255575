"""A broker behind `kraft-wire proxy` without rules: clients know the proxy's addresses alone."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Self

from tests.clients.running import Broker
from tests.testing.proxy_process import ProxyProcess

__all__ = ["Proxied"]


class Proxied:
    """The broker as clients reach it; it restarts, and the proxy stays."""

    def __init__(self, broker: Broker, home: Path) -> None:
        self._broker = broker
        self._proxy = ProxyProcess(home, broker.bootstrap)

    @property
    def data(self) -> Path:
        """The broker's."""
        return self._broker.data

    @property
    def log(self) -> Path:
        """The broker's."""
        return self._broker.log

    @property
    def bootstrap(self) -> str:
        """The proxy's address."""
        return self._proxy.bootstrap

    def restart(self) -> None:
        """Restart the broker behind the proxy."""
        self._broker.restart()

    def __enter__(self) -> Self:
        self._proxy.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._proxy.stop()
