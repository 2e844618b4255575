"""The cluster's metadata: records of its log as images, and images as records of a snapshot.

Brokers, controllers and nodes all read the same image, which depends on none of them. Read
`image.py` (the state), `replay.py` and `loader.py` (how records change it), then `image_records.py`
(an image as the records of a snapshot).
"""
