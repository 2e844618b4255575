"""A Kafka cluster in tests, with faults on demand (docs/TESTING.md, docs/FAULTS.md)."""

from kraft_wire.testing.admin import RequestRefused
from kraft_wire.testing.cluster import Cluster
from kraft_wire.testing.exchanges import Exchange
from kraft_wire.testing.faults.rule import (
    Rule,
    every_time,
    on_call,
    once,
    times,
    with_probability,
)
from kraft_wire.testing.in_process import DidNotStart, NodeFailed
from kraft_wire.testing.namespace import Namespace

__all__ = [
    "Cluster",
    "DidNotStart",
    "Exchange",
    "Namespace",
    "NodeFailed",
    "RequestRefused",
    "Rule",
    "every_time",
    "on_call",
    "once",
    "times",
    "with_probability",
]
