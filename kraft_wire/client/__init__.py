"""A synchronous client over sockets, for tools that ask a cluster rather than serve one.

`connection` talks to one broker and is all that is imported here, because a command should start
quickly. Over it: `cluster` finds leaders and tries again, `fetching` reads one partition ahead of
its decoder, `producing` writes idempotently. Bytes of records go in and out as they are.
"""

from kraft_wire.client.connection import BrokerConnection, BrokerConnectionError, split_address

__all__ = ["BrokerConnection", "BrokerConnectionError", "split_address"]
