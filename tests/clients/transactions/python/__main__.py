"""``python -m tests.clients.transactions.python CLIENT BOOTSTRAP``: a Python client's driver."""

from __future__ import annotations

import importlib
import os
import sys

from tests.clients.transactions.python.library import serve

LIBRARIES = {
    "confluent-kafka": "confluent_library",
    "kafka-python": "kafka_python_library",
    "aiokafka": "aiokafka_library",
}


def main() -> None:
    """Serve; a client's left-over threads do not hold up the end."""
    client, bootstrap = sys.argv[1:]
    module = importlib.import_module(f"tests.clients.transactions.python.{LIBRARIES[client]}")
    serve(module.LIBRARY(bootstrap))
    os._exit(0)


if __name__ == "__main__":
    main()
