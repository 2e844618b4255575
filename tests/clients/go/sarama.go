package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/IBM/sarama"
)

type saramaClient struct {
	bootstrap []string
	admin     sarama.ClusterAdmin
}

func saramaConfig() *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.MaxVersion
	config.Producer.Return.Successes = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.MaxMessageBytes = messageBytesMax
	config.Producer.Retry.Max = 30
	config.Consumer.Return.Errors = true
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = false
	config.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{sarama.NewBalanceStrategyRange()}
	secureSarama(config)
	return config
}

func newSarama(bootstrap string) adapter {
	servers := strings.Split(bootstrap, ",")
	admin, err := sarama.NewClusterAdmin(servers, saramaConfig())
	if err != nil {
		panic(err)
	}
	return &saramaClient{servers, admin}
}

// asked asks the cluster. An admin of sarama keeps the broker that it asks, and tries no other when
// that one cannot be reached: where brokers restart, a new admin is made then, and nothing was sent.
func (s *saramaClient) asked(question func(sarama.ClusterAdmin) error) error {
	ctx, cancel := inTime()
	defer cancel()
	for {
		err := question(s.admin)
		if !leadersMove || !errors.Is(err, syscall.ECONNREFUSED) || ctx.Err() != nil {
			return err
		}
		time.Sleep(100 * time.Millisecond)
		if fresh, err := sarama.NewClusterAdmin(s.bootstrap, saramaConfig()); err == nil {
			s.admin.Close()
			s.admin = fresh
		}
	}
}

func (s *saramaClient) brokers() ([]string, error) {
	var found []*sarama.Broker
	err := s.asked(func(admin sarama.ClusterAdmin) (err error) {
		found, _, err = admin.DescribeCluster()
		return err
	})
	var names []string
	for _, broker := range found {
		names = append(names, broker.Addr())
	}
	return names, err
}

func (s *saramaClient) partitions(topic string) (int, error) {
	var found []*sarama.TopicMetadata
	err := s.asked(func(admin sarama.ClusterAdmin) (err error) {
		found, err = admin.DescribeTopics([]string{topic})
		return err
	})
	if err != nil {
		return 0, err
	}
	if errors.Is(found[0].Err, sarama.ErrUnknownTopicOrPartition) {
		return 0, nil
	}
	if found[0].Err != sarama.ErrNoError {
		return 0, found[0].Err
	}
	return len(found[0].Partitions), nil
}

func (s *saramaClient) createTopic(topic string, partitions int, configs map[string]string) error {
	entries := map[string]*string{}
	for key, value := range configs {
		entries[key] = &value
	}
	detail := &sarama.TopicDetail{
		NumPartitions: int32(partitions), ReplicationFactor: int16(replicas), ConfigEntries: entries,
	}
	return s.asked(func(admin sarama.ClusterAdmin) error { return admin.CreateTopic(topic, detail, false) })
}

func (s *saramaClient) addPartitions(topic string, total int) error {
	return s.asked(func(admin sarama.ClusterAdmin) error {
		return admin.CreatePartitions(topic, int32(total), nil, false)
	})
}

func (s *saramaClient) alterConfig(topic, key, value string) error {
	change := map[string]sarama.IncrementalAlterConfigsEntry{
		key: {Operation: sarama.IncrementalAlterConfigsOperationSet, Value: &value},
	}
	return s.asked(func(admin sarama.ClusterAdmin) error {
		return admin.IncrementalAlterConfig(sarama.TopicResource, topic, change, false)
	})
}

func (s *saramaClient) describeConfig(topic, key string) (string, error) {
	resource := sarama.ConfigResource{Type: sarama.TopicResource, Name: topic, ConfigNames: []string{key}}
	var found []sarama.ConfigEntry
	err := s.asked(func(admin sarama.ClusterAdmin) (err error) {
		found, err = admin.DescribeConfig(resource)
		return err
	})
	if err != nil {
		return "", err
	}
	for _, entry := range found {
		if entry.Name == key {
			return entry.Value, nil
		}
	}
	return "", fmt.Errorf("no config %s", key)
}

func (s *saramaClient) deleteTopic(topic string) error {
	return s.asked(func(admin sarama.ClusterAdmin) error { return admin.DeleteTopic(topic) })
}

var saramaCodecs = map[string]sarama.CompressionCodec{
	"none": sarama.CompressionNone, "gzip": sarama.CompressionGZIP, "snappy": sarama.CompressionSnappy,
	"lz4": sarama.CompressionLZ4, "zstd": sarama.CompressionZSTD,
}

func (s *saramaClient) produce(topic string, records []record, codec string, idempotent bool) error {
	config := saramaConfig()
	config.Producer.Compression = saramaCodecs[codec]
	if idempotent || leadersMove {
		config.Producer.Idempotent = true
		config.Net.MaxOpenRequests = 1
	}
	if records[0].partition >= 0 {
		config.Producer.Partitioner = sarama.NewManualPartitioner
	}
	producer, err := sarama.NewSyncProducer(s.bootstrap, config)
	if err != nil {
		return err
	}
	var messages []*sarama.ProducerMessage
	for _, one := range records {
		message := &sarama.ProducerMessage{Topic: topic, Partition: int32(one.partition), Timestamp: one.at}
		if one.key != nil {
			message.Key = sarama.ByteEncoder(one.key)
		}
		if one.value != nil {
			message.Value = sarama.ByteEncoder(one.value)
		}
		for _, h := range one.headers {
			message.Headers = append(message.Headers, sarama.RecordHeader{Key: []byte(h.name), Value: h.value})
		}
		messages = append(messages, message)
	}
	return first(producer.SendMessages(messages), producer.Close())
}

func fromSarama(one *sarama.ConsumerMessage) record {
	made := record{partition: int(one.Partition), offset: one.Offset, key: one.Key, value: one.Value}
	for _, h := range one.Headers {
		made.headers = append(made.headers, header{string(h.Key), h.Value})
	}
	return made
}

func (s *saramaClient) consume(topic string, partitions, count int) ([]record, error) {
	consumer, err := sarama.NewConsumer(s.bootstrap, saramaConfig())
	if err != nil {
		return nil, err
	}
	arrived := make(chan record)
	done := make(chan struct{})
	var streams []sarama.PartitionConsumer
	for n := range partitions {
		stream, err := consumer.ConsumePartition(topic, int32(n), sarama.OffsetOldest)
		if err != nil {
			return nil, err
		}
		streams = append(streams, stream)
		go forward(stream, arrived, done)
	}
	found, err := collect(arrived, count)
	close(done)
	for _, stream := range streams {
		stream.AsyncClose()
	}
	return found, err
}

func forward(stream sarama.PartitionConsumer, arrived chan<- record, done <-chan struct{}) {
	for one := range stream.Messages() {
		select {
		case arrived <- fromSarama(one):
		case <-done:
			return
		}
	}
}

func collect(arrived <-chan record, count int) ([]record, error) {
	var found []record
	late := time.After(operationTime)
	for len(found) < count {
		select {
		case one := <-arrived:
			found = append(found, one)
		case <-late:
			return found, fmt.Errorf("%d of %d records in time", len(found), count)
		}
	}
	return found, nil
}

// saramaHandler hands out what its claims give until a quota is filled (none if it is 0).
type saramaHandler struct {
	inbox
	topic string
	quota int
	full  context.CancelFunc
}

func (h *saramaHandler) Setup(session sarama.ConsumerGroupSession) error {
	h.hold(len(session.Claims()[h.topic]))
	return nil
}

func (h *saramaHandler) Cleanup(sarama.ConsumerGroupSession) error {
	h.hold(0)
	return nil
}

func (h *saramaHandler) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for one := range claim.Messages() {
		h.add(fromSarama(one))
		session.MarkMessage(one, "")
		if h.quota > 0 && len(h.received()) >= h.quota {
			session.Commit()
			h.full()
			return nil
		}
	}
	return nil
}

func (s *saramaClient) consumeInGroup(topic, group string, count int) ([]record, error) {
	members, err := sarama.NewConsumerGroup(s.bootstrap, group, saramaConfig())
	if err != nil {
		return nil, err
	}
	ctx, cancel := inTime()
	defer cancel()
	handler := &saramaHandler{topic: topic, quota: count, full: cancel}
	for ctx.Err() == nil {
		if err := members.Consume(ctx, []string{topic}, handler); err != nil && ctx.Err() == nil {
			return nil, err
		}
	}
	found := handler.received()
	if len(found) < count {
		return nil, fmt.Errorf("%d of %d records in time", len(found), count)
	}
	return found, members.Close()
}

type saramaMember struct {
	*saramaHandler
	group sarama.ConsumerGroup
	stop  context.CancelFunc
	done  chan struct{}
}

func (s *saramaClient) join(topic, group string) (member, error) {
	joined, err := sarama.NewConsumerGroup(s.bootstrap, group, saramaConfig())
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	one := &saramaMember{&saramaHandler{topic: topic}, joined, cancel, make(chan struct{})}
	go func() {
		for range joined.Errors() {
			continue
		}
	}()
	go func() {
		defer close(one.done)
		for ctx.Err() == nil {
			if err := joined.Consume(ctx, []string{topic}, one.saramaHandler); err != nil {
				time.Sleep(50 * time.Millisecond)
			}
		}
	}()
	return one, nil
}

func (m *saramaMember) leave() error {
	m.stop()
	<-m.done
	return m.group.Close()
}

func (s *saramaClient) offsetAt(topic string, at time.Time) (int64, error) {
	client, err := sarama.NewClient(s.bootstrap, saramaConfig())
	if err != nil {
		return 0, err
	}
	defer client.Close()
	return client.GetOffset(topic, 0, at.UnixMilli())
}

type saramaReader struct {
	consumer sarama.Consumer
	topic    string
	stream   sarama.PartitionConsumer
}

func (s *saramaClient) reader(topic string) (reader, error) {
	consumer, err := sarama.NewConsumer(s.bootstrap, saramaConfig())
	return &saramaReader{consumer: consumer, topic: topic}, err
}

func (r *saramaReader) seek(offset int64) error {
	if r.stream != nil {
		if err := r.stream.Close(); err != nil {
			return err
		}
	}
	stream, err := r.consumer.ConsumePartition(r.topic, 0, offset)
	r.stream = stream
	return err
}

func (r *saramaReader) seekToBeginning() error { return r.seek(sarama.OffsetOldest) }

func (r *saramaReader) seekToEnd() error { return r.seek(sarama.OffsetNewest) }

func (r *saramaReader) next() (record, error) {
	select {
	case one := <-r.stream.Messages():
		return fromSarama(one), nil
	case err := <-r.stream.Errors():
		return record{}, err
	case <-time.After(operationTime):
		return record{}, errors.New("no record in time")
	}
}

func (r *saramaReader) close() error {
	return first(r.stream.Close(), r.consumer.Close())
}

func (s *saramaClient) tellsEmptyFromNull() bool { return true }
