"""The metadata log as tables: its replay, its history, its views."""
