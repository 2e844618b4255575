package main

import (
	"errors"
	"time"

	"github.com/IBM/sarama"
)

type saramaTransactor struct {
	client   *saramaClient
	producer sarama.SyncProducer
	command  order
	source   *saramaStream // of a group's offsets; nil without a group
	waiting  []record
	moved    map[int32]int64
}

func (s *saramaClient) open(command order) (transactor, error) {
	config := saramaConfig()
	config.Producer.Idempotent = true
	config.Net.MaxOpenRequests = 1
	config.Producer.Transaction.ID = command.ID
	config.Producer.Transaction.Timeout = time.Duration(command.TimeoutMs) * time.Millisecond
	config.Producer.Transaction.Retry.Max = 100
	config.Producer.Partitioner = sarama.NewManualPartitioner
	producer, err := sarama.NewSyncProducer(s.bootstrap, config)
	if err != nil {
		return nil, err
	}
	made := &saramaTransactor{client: s, producer: producer, command: command, moved: map[int32]int64{}}
	if command.Group != "" {
		err = made.rewind()
	}
	return made, err
}

// rewind reads the source from the group's offsets, which transactions alone commit.
func (t *saramaTransactor) rewind() error {
	if t.source != nil {
		t.source.close()
	}
	count, err := t.client.partitions(t.command.Source)
	if err != nil {
		return err
	}
	var numbers []int32
	for n := range count {
		numbers = append(numbers, int32(n))
	}
	var found *sarama.OffsetFetchResponse
	err = t.client.asked(func(admin sarama.ClusterAdmin) (err error) {
		places := map[string][]int32{t.command.Source: numbers}
		found, err = admin.ListConsumerGroupOffsets(t.command.Group, places)
		return err
	})
	if err != nil {
		return err
	}
	t.source, err = t.client.opened(t.command.Source, count, true, func(number int32) int64 {
		block := found.GetBlock(t.command.Source, number)
		if block == nil || block.Offset < 0 {
			return sarama.OffsetOldest
		}
		return block.Offset
	})
	t.waiting, t.moved = nil, map[int32]int64{}
	return err
}

func (t *saramaTransactor) begin() error { return t.producer.BeginTxn() }

func (t *saramaTransactor) send(topic string, records []record) ([]record, error) {
	var messages []*sarama.ProducerMessage
	for _, one := range records {
		messages = append(messages, &sarama.ProducerMessage{
			Topic: topic, Partition: int32(one.partition), Value: sarama.ByteEncoder(one.value),
		})
	}
	err := t.producer.SendMessages(messages)
	placed := append([]record(nil), records...)
	for n, message := range messages {
		placed[n].offset = message.Offset
	}
	return placed, err
}

func (t *saramaTransactor) poll(count int) ([]record, error) {
	if len(t.waiting) == 0 {
		found, err := t.source.poll(transactionPoll)
		if err != nil {
			return nil, err
		}
		t.waiting = found
	}
	taken := t.waiting[:min(count, len(t.waiting))]
	t.waiting = t.waiting[len(taken):]
	for _, one := range taken {
		t.moved[int32(one.partition)] = one.offset + 1
	}
	return taken, nil
}

func (t *saramaTransactor) sendOffsets() error {
	if len(t.moved) == 0 {
		return nil
	}
	var offsets []*sarama.PartitionOffsetMetadata
	for partition, offset := range t.moved {
		offsets = append(offsets, &sarama.PartitionOffsetMetadata{
			Partition: partition, Offset: offset, LeaderEpoch: -1,
		})
	}
	places := map[string][]*sarama.PartitionOffsetMetadata{t.command.Source: offsets}
	return t.producer.AddOffsetsToTxn(places, t.command.Group)
}

func (t *saramaTransactor) commit() error {
	if err := t.sendOffsets(); err != nil {
		return err
	}
	err := t.producer.CommitTxn()
	if err == nil {
		t.moved = map[int32]int64{}
	}
	return err
}

func (t *saramaTransactor) abort(offsets bool) error {
	if offsets {
		if err := t.sendOffsets(); err != nil {
			return err
		}
	}
	if err := t.producer.AbortTxn(); err != nil || t.source == nil {
		return err
	}
	return t.rewind()
}

func (t *saramaTransactor) close() {
	if t.source != nil {
		t.source.close()
	}
	_ = t.producer.Close()
}

type saramaStream struct {
	consumer sarama.Consumer
	parts    []sarama.PartitionConsumer
	arrived  chan record
	done     chan struct{}
}

func (s *saramaClient) stream(topic string, partitions int, committed bool) (stream, error) {
	return s.opened(topic, partitions, committed, func(int32) int64 { return sarama.OffsetOldest })
}

func (s *saramaClient) opened(
	topic string, partitions int, committed bool, start func(number int32) int64,
) (*saramaStream, error) {
	config := saramaConfig()
	if committed {
		config.Consumer.IsolationLevel = sarama.ReadCommitted
	}
	consumer, err := sarama.NewConsumer(s.bootstrap, config)
	if err != nil {
		return nil, err
	}
	made := &saramaStream{consumer: consumer, arrived: make(chan record), done: make(chan struct{})}
	for n := range partitions {
		part, err := consumer.ConsumePartition(topic, int32(n), start(int32(n)))
		if err != nil {
			return nil, err
		}
		made.parts = append(made.parts, part)
		go forward(part, made.arrived, made.done)
		go func() {
			for range part.Errors() {
				continue
			}
		}()
	}
	return made, nil
}

// poll waits for a first record, and takes what comes at once.
func (s *saramaStream) poll(wait time.Duration) ([]record, error) {
	var found []record
	late := time.After(wait)
	for {
		select {
		case one := <-s.arrived:
			found = append(found, one)
			late = time.After(10 * time.Millisecond)
		case <-late:
			return found, nil
		}
	}
}

func (s *saramaStream) close() {
	close(s.done)
	for _, part := range s.parts {
		part.AsyncClose()
	}
}

func (s *saramaClient) isFatal(err error) bool {
	for _, fatal := range []error{
		sarama.ErrProducerFenced, sarama.ErrInvalidProducerEpoch, sarama.ErrInvalidProducerIDMapping,
		sarama.ErrInvalidTxnState, sarama.ErrTransitionNotAllowed,
	} {
		if errors.Is(err, fatal) {
			return true
		}
	}
	return false
}
