package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"
)

const segmentMaxWait = 250 * time.Millisecond

type segment struct {
	servers []string
	client  *kafka.Client
}

func newSegment(bootstrap string) adapter {
	servers := strings.Split(bootstrap, ",")
	return &segment{servers, &kafka.Client{
		Addr: kafka.TCP(servers...), Timeout: operationTime, Transport: segmentTransport(),
	}}
}

// asked repeats a request whose connection broke, which kafka.Client leaves to its user.
func asked[Q, A any](ask func(context.Context, Q) (A, error), request Q) (A, error) {
	deadline := time.Now().Add(operationTime)
	for {
		answer, err := ask(context.Background(), request)
		if !isAway(err) || !leadersMove || time.Now().After(deadline) {
			return answer, err
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// isAway says that a broker left, and not what became of the request that it was sent.
func isAway(err error) bool {
	var broken net.Error
	return errors.As(err, &broken) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

func (s *segment) metadata(topics ...string) (*kafka.MetadataResponse, error) {
	return asked(s.client.Metadata, &kafka.MetadataRequest{Topics: topics})
}

func (s *segment) brokers() ([]string, error) {
	found, err := s.metadata()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, broker := range found.Brokers {
		names = append(names, fmt.Sprintf("%s:%d", broker.Host, broker.Port))
	}
	return names, nil
}

func (s *segment) partitions(topic string) (int, error) {
	found, err := s.metadata(topic)
	if err != nil {
		return 0, err
	}
	if errors.Is(found.Topics[0].Error, kafka.UnknownTopicOrPartition) {
		return 0, nil
	}
	return len(found.Topics[0].Partitions), found.Topics[0].Error
}

func (s *segment) createTopic(topic string, partitions int, configs map[string]string) error {
	wanted := kafka.TopicConfig{Topic: topic, NumPartitions: partitions, ReplicationFactor: replicas}
	for key, value := range configs {
		wanted.ConfigEntries = append(wanted.ConfigEntries, kafka.ConfigEntry{ConfigName: key, ConfigValue: value})
	}
	request := &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{wanted}}
	answer, err := asked(s.client.CreateTopics, request)
	if err != nil {
		return err
	}
	return answer.Errors[topic]
}

func (s *segment) addPartitions(topic string, total int) error {
	answer, err := asked(s.client.CreatePartitions, &kafka.CreatePartitionsRequest{
		Topics: []kafka.TopicPartitionsConfig{{Name: topic, Count: int32(total)}},
	})
	if err != nil {
		return err
	}
	return answer.Errors[topic]
}

func (s *segment) alterConfig(topic, key, value string) error {
	answer, err := asked(s.client.IncrementalAlterConfigs, &kafka.IncrementalAlterConfigsRequest{
		Resources: []kafka.IncrementalAlterConfigsRequestResource{{
			ResourceType: kafka.ResourceTypeTopic,
			ResourceName: topic,
			Configs: []kafka.IncrementalAlterConfigsRequestConfig{{
				Name: key, Value: value, ConfigOperation: kafka.ConfigOperationSet,
			}},
		}},
	})
	if err != nil {
		return err
	}
	return answer.Resources[0].Error
}

func (s *segment) describeConfig(topic, key string) (string, error) {
	answer, err := asked(s.client.DescribeConfigs, &kafka.DescribeConfigsRequest{
		Resources: []kafka.DescribeConfigRequestResource{{
			ResourceType: kafka.ResourceTypeTopic, ResourceName: topic, ConfigNames: []string{key},
		}},
	})
	if err != nil {
		return "", err
	}
	resource := answer.Resources[0]
	if resource.Error != nil || len(resource.ConfigEntries) == 0 {
		return "", fmt.Errorf("no config %s: %v", key, resource.Error)
	}
	return resource.ConfigEntries[0].ConfigValue, nil
}

func (s *segment) deleteTopic(topic string) error {
	answer, err := asked(s.client.DeleteTopics, &kafka.DeleteTopicsRequest{Topics: []string{topic}})
	if err != nil {
		return err
	}
	return answer.Errors[topic]
}

var segmentCodecs = map[string]kafka.Compression{
	"gzip": kafka.Gzip, "snappy": kafka.Snappy, "lz4": kafka.Lz4, "zstd": kafka.Zstd,
}

func (s *segment) produce(topic string, records []record, codec string, idempotent bool) error {
	if idempotent {
		return errors.New("kafka-go has no idempotent producer")
	}
	writer := &kafka.Writer{
		Addr: kafka.TCP(s.servers...), Topic: topic, RequiredAcks: kafka.RequireAll, Balancer: &kafka.Hash{},
		Transport: segmentTransport(), Compression: segmentCodecs[codec], BatchTimeout: 5 * time.Millisecond, AllowAutoTopicCreation: true,
	}
	if records[0].partition >= 0 {
		writer.Balancer = kafka.BalancerFunc(func(message kafka.Message, _ ...int) int { return message.Partition })
	}
	var messages []kafka.Message
	for _, one := range records {
		message := kafka.Message{Partition: one.partition, Key: one.key, Value: one.value, Time: one.at}
		for _, h := range one.headers {
			message.Headers = append(message.Headers, kafka.Header{Key: h.name, Value: h.value})
		}
		messages = append(messages, message)
	}
	ctx, cancel := inTime()
	defer cancel()
	return first(writeKnown(ctx, writer, messages), writer.Close())
}

// writeKnown repeats a write while the topic is being created, or if the broker leaves that the writer
// asks for the topic, which it leaves to its user. Whatever fails later are kafka.WriteErrors.
func writeKnown(ctx context.Context, writer *kafka.Writer, messages []kafka.Message) error {
	for {
		err := writer.WriteMessages(ctx, messages...)
		retriable := errors.Is(err, kafka.UnknownTopicOrPartition) || errors.Is(err, kafka.LeaderNotAvailable)
		if !retriable && !(leadersMove && isAway(err)) || ctx.Err() != nil {
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func fromSegment(one kafka.Message) record {
	made := record{partition: one.Partition, offset: one.Offset, key: one.Key, value: one.Value}
	for _, h := range one.Headers {
		made.headers = append(made.headers, header{h.Key, h.Value})
	}
	return made
}

func (s *segment) stream(topic string, partition int) *kafka.Reader {
	return kafka.NewReader(kafka.ReaderConfig{
		Brokers: s.servers, Topic: topic, Partition: partition, MinBytes: 1, MaxBytes: 10_000_000,
		MaxWait: segmentMaxWait, Dialer: segmentDialer(),
	})
}

// nextOf reads on where the reader tells of a broker that it could not reach: it goes on trying by
// itself, and would only be left alone by its user. The end of the reader is an end.
func nextOf(ctx context.Context, read func(context.Context) (kafka.Message, error)) (kafka.Message, error) {
	for {
		one, err := read(ctx)
		if err == nil || !leadersMove || ctx.Err() != nil || errors.Is(err, io.EOF) {
			return one, err
		}
		fmt.Fprintln(os.Stderr, "read on after:", err)
	}
}

func (s *segment) consume(topic string, partitions, count int) ([]record, error) {
	ctx, cancel := inTime()
	defer cancel()
	arrived := make(chan record)
	for n := range partitions {
		stream := s.stream(topic, n)
		defer stream.Close()
		go func() {
			for {
				one, err := nextOf(ctx, stream.ReadMessage)
				if err != nil {
					return
				}
				select {
				case arrived <- fromSegment(one):
				case <-ctx.Done():
					return
				}
			}
		}()
	}
	return collect(arrived, count)
}

func (s *segment) consumeInGroup(topic, group string, count int) ([]record, error) {
	from := kafka.NewReader(kafka.ReaderConfig{
		Brokers: s.servers, GroupID: group, Topic: topic, StartOffset: kafka.FirstOffset,
		MinBytes: 1, MaxBytes: 10_000_000, MaxWait: segmentMaxWait, SessionTimeout: session,
		Dialer: segmentDialer(),
	})
	ctx, cancel := inTime()
	defer cancel()
	var found []record
	var last kafka.Message
	for len(found) < count {
		one, err := nextOf(ctx, from.FetchMessage)
		if err != nil {
			return nil, fmt.Errorf("%d of %d records: %w", len(found), count, err)
		}
		found = append(found, fromSegment(one))
		last = one
	}
	return found, first(from.CommitMessages(ctx, last), from.Close())
}

type segmentMember struct {
	inbox
	segment *segment
	group   *kafka.ConsumerGroup
	stop    context.CancelFunc
	done    chan struct{}
}

func (s *segment) join(topic, group string) (member, error) {
	joined, err := kafka.NewConsumerGroup(kafka.ConsumerGroupConfig{
		ID: group, Brokers: s.servers, Topics: []string{topic}, StartOffset: kafka.FirstOffset,
		HeartbeatInterval: time.Second, SessionTimeout: session, Dialer: segmentDialer(),
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	one := &segmentMember{segment: s, group: joined, stop: cancel, done: make(chan struct{})}
	go one.run(ctx, topic)
	return one, nil
}

func (m *segmentMember) run(ctx context.Context, topic string) {
	defer close(m.done)
	for ctx.Err() == nil {
		generation, err := m.group.Next(ctx)
		if err != nil {
			continue
		}
		given := generation.Assignments[topic]
		m.hold(len(given))
		for _, assignment := range given {
			generation.Start(func(ctx context.Context) { m.read(ctx, topic, assignment) })
		}
	}
}

func (m *segmentMember) read(ctx context.Context, topic string, from kafka.PartitionAssignment) {
	stream := m.segment.stream(topic, from.ID)
	defer stream.Close()
	if err := stream.SetOffset(from.Offset); err != nil {
		return
	}
	for {
		one, err := nextOf(ctx, stream.ReadMessage)
		if err != nil {
			return
		}
		m.add(fromSegment(one))
	}
}

func (m *segmentMember) leave() error {
	m.stop()
	err := m.group.Close()
	<-m.done
	return err
}

func (s *segment) offsetAt(topic string, at time.Time) (int64, error) {
	answer, err := asked(s.client.ListOffsets, &kafka.ListOffsetsRequest{
		Topics: map[string][]kafka.OffsetRequest{topic: {kafka.TimeOffsetOf(0, at)}},
	})
	if err != nil {
		return 0, err
	}
	found := answer.Topics[topic][0]
	for offset := range found.Offsets {
		return offset, found.Error
	}
	return noOffset, found.Error
}

type segmentReader struct {
	segment *segment
	topic   string
	stream  *kafka.Conn
}

func (s *segment) reader(topic string) (reader, error) {
	conn, err := s.dialLeader(topic)
	return &segmentReader{segment: s, topic: topic, stream: conn}, err
}

// dialLeader asks every broker who leads, and again while the leader leaves.
func (s *segment) dialLeader(topic string) (*kafka.Conn, error) {
	for deadline := time.Now().Add(operationTime); ; time.Sleep(100 * time.Millisecond) {
		var conn *kafka.Conn
		err := errors.New("no server")
		for _, server := range s.servers {
			if conn, err = segmentDialer().DialLeader(context.Background(), "tcp", server, topic, 0); err == nil {
				return conn, nil
			}
		}
		if !leadersMove || time.Now().After(deadline) {
			return nil, err
		}
	}
}

// onLeader repeats what is asked of a connection at the leader that comes next: a kafka.Conn has but one.
func (r *segmentReader) onLeader(ask func() error) error {
	offset, whence := r.stream.Offset()
	deadline := time.Now().Add(operationTime)
	err := ask()
	for leadersMove && (isAway(err) || errors.Is(err, kafka.NotLeaderForPartition)) && time.Now().Before(deadline) {
		r.stream.Close()
		if r.stream, err = r.segment.dialLeader(r.topic); err != nil {
			return err
		}
		if _, err = r.stream.Seek(offset, whence|kafka.SeekDontCheck); err == nil {
			err = ask()
		}
	}
	return err
}

func (r *segmentReader) seek(whence int) error {
	return r.onLeader(func() error {
		_, err := r.stream.Seek(0, whence)
		return err
	})
}

func (r *segmentReader) seekToBeginning() error { return r.seek(kafka.SeekStart) }

func (r *segmentReader) seekToEnd() error { return r.seek(kafka.SeekEnd) }

func (r *segmentReader) next() (one record, err error) {
	err = r.onLeader(func() error {
		if err := r.stream.SetReadDeadline(time.Now().Add(operationTime)); err != nil {
			return err
		}
		message, err := r.stream.ReadMessage(messageBytesMax)
		one = fromSegment(message)
		return err
	})
	return one, err
}

func (r *segmentReader) close() error {
	return r.stream.Close()
}

func (s *segment) tellsEmptyFromNull() bool { return false }
