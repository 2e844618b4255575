"""Who a client is: SASL as a state machine, and principals out of certificates."""
