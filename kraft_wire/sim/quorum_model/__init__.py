"""An executable model of the metadata quorum, written from the KIPs: a second opinion on `raft`.

`states` holds what a replica is and what it sends, `rules` what it may do. `world` puts three
replicas and a network together, `exploration` visits every state within a bound. Nothing here
imports the product; `kraft_wire.sim.judge.model.watch` compares the two.
"""
