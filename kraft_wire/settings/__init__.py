"""Definitions of Kafka's configuration keys, and values parsed by them.

`definition.py` is the vocabulary; `topic.py`, `broker.py` and `group.py` are the tables of release
4.3.1; `values.py` parses; `node_settings.py` layers file, dynamic defaults and dynamic values.
"""
