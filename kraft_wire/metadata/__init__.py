"""The cluster's metadata: what its log says, as images, and images as records again.

Brokers, controllers and nodes all read the same image; none of them is needed to make one. Read
`image.py` (the state), `replay.py` and `loader.py` (how records change it), then `image_records.py`
(an image as the records of a snapshot).
"""
