module example.com/kafkatest

go 1.21
