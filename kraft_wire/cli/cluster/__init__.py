"""`kraft-wire cluster`: controllers and brokers as processes of this machine."""
