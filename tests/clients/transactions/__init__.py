"""Transactions of real clients: drivers in each client's language, scenarios once for all."""
