"""Apache Kafka's brokers as guests of our controllers: `make guests`."""
