"""A node's metrics under the names of Kafka's JMX exporter."""
