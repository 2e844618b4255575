"""What goes wrong in a world, and what its operator does meanwhile.

`quorum_faults` carries out the faults of a plan; clusters of brokers have more of them.
"""
