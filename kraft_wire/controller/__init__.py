"""The controller: turns requests into records, based on the image of the metadata.

Read `controller.py`, `requests.py` and `dispatch.py`, then the modules named like their APIs.
"""
