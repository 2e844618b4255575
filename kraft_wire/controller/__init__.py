"""Metadata and the controller: records into images, requests into records.

Read `image.py` (the state), `replay.py` and `loader.py` (how records change it), `requests.py`
and `dispatch.py` (requests), then the modules named like their APIs.
"""

from kraft_wire.controller.controller import Controller, ControllerResult
from kraft_wire.controller.image import EMPTY_IMAGE, MetadataImage
from kraft_wire.controller.image_draft import MetadataFault
from kraft_wire.controller.loader import MetadataLoader

__all__ = [
    "EMPTY_IMAGE",
    "Controller",
    "ControllerResult",
    "MetadataFault",
    "MetadataImage",
    "MetadataLoader",
]
