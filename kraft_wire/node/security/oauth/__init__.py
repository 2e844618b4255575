"""OAUTHBEARER, the server's side: the exchange, signed and unsecured tokens, and key sets."""
