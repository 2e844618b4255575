"""Apache Kafka 4.3.1 as a judge: its classes, its tools and its server."""
