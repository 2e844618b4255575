"""`consume --timeout-ms`: no request lets a broker wait longer than the silence that ends it."""

import subprocess
import sys

import pytest

from kraft_wire.testing import Cluster
from kraft_wire.wire.generated.fetch import FetchRequest


@pytest.mark.parametrize(("silence_ms", "waited_ms"), [(40, 40), (600, 500)])
def test_broker_waits_no_longer_than_the_silence(silence_ms: int, waited_ms: int) -> None:
    with Cluster(topics={"t": 1}) as cluster:
        consume = [sys.executable, "-m", "kraft_wire", "consume", "t"]
        options = ["--timeout-ms", str(silence_ms), "-b", cluster.bootstrap_servers]
        done = subprocess.run([*consume, *options], capture_output=True, timeout=60)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
        waits = set()
        for exchange in cluster.requests(api="Fetch"):
            assert isinstance(exchange.request, FetchRequest)
            waits.add(exchange.request.max_wait_ms)
    assert waits == {waited_ms}
