"""What a seed draws: clusters, habits of machines, and faults as a list with times.

`plan` is what all of it comes to; the siblings draw what it does not draw itself.
"""
