"""Links to other nodes: channels, versions, forwarded requests, and requests among brokers."""
