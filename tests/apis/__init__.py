"""Tests of the registry of API keys."""
