"""Who may do what: the decision of Kafka's `StandardAuthorizer` over the image's ACLs (KIP-801)."""
