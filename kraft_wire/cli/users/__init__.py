"""`kraft-wire users`: users with SCRAM credentials of any cluster."""
