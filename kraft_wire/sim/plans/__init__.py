"""What a seed draws: clusters, habits of machines, and faults as a list with times.

`plan` holds the whole plan; its siblings draw the parts that it does not draw itself.
"""
