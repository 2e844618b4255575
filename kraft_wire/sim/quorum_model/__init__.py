"""An executable model of the metadata quorum, written from the KIPs: a second opinion on `raft`.

`states` holds the states and messages of a replica, `rules` its allowed steps. `world` combines
three replicas and a network, `exploration` visits every state within a bound. Nothing here imports
the product; `kraft_wire.sim.judge.model.watch` compares the two.
"""
