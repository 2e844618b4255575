"""The attack list of docs/DEVIATIONS.md's limits, run against a live server: `make attack`."""
