"""The controller: requests into records, decided by the image that `metadata` has of them.

Read `controller.py`, `requests.py` and `dispatch.py`, then the modules named like their APIs.
"""

from kraft_wire.controller.controller import Controller, ControllerResult

__all__ = ["Controller", "ControllerResult"]
