"""Links to other nodes: channels, versions, forwarded requests, and fetches of followers."""
