"""Tests of kraft_wire, and the judges that they call: Apache Kafka 4.3.1 and real clients."""
