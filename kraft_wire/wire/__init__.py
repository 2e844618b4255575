"""Generated and hand-written codecs of Kafka's wire protocol and record formats."""
