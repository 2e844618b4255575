"""`python -m tests.login.record_answers`: keep what Apache Kafka 4.3.1's login classes answer.

The tests compare with the record where no Java is, and with the classes themselves where it is.
"""

from __future__ import annotations

import json

from tests.login import test_token_endpoint as endpoint
from tests.login import test_token_refresh as refresh


def main() -> None:
    """Ask the classes, and write the record."""
    requests, tokens = endpoint.apaches_requests()
    record = {
        "refreshed at": refresh.apaches_times(refresh.drawn_cases(seed=60, count=400)),
        "requests": [[headers, body.decode()] for headers, body in requests],
        "tokens": tokens,
        "answers": endpoint.apaches_answers(),
    }
    refresh.RECORDED.write_text(json.dumps(record, indent=0) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
