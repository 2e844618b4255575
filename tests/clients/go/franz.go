package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

type franz struct {
	bootstrap string
	admin     *kadm.Client
}

func newFranz(bootstrap string) adapter {
	client, err := kgo.NewClient(append(
		franzSecurity(), kgo.SeedBrokers(strings.Split(bootstrap, ",")...), kgo.MetadataMinAge(100*time.Millisecond))...)
	if err != nil {
		panic(err)
	}
	return &franz{bootstrap, kadm.NewClient(client)}
}

func inTime() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), operationTime)
}

func (f *franz) client(options ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append(append(options, franzSecurity()...), kgo.SeedBrokers(f.seeds()...))...)
}

func (f *franz) seeds() []string { return strings.Split(f.bootstrap, ",") }

func (f *franz) brokers() ([]string, error) {
	ctx, cancel := inTime()
	defer cancel()
	found, err := f.admin.ListBrokers(ctx)
	var names []string
	for _, broker := range found {
		names = append(names, fmt.Sprintf("%s:%d", broker.Host, broker.Port))
	}
	return names, err
}

func (f *franz) partitions(topic string) (int, error) {
	ctx, cancel := inTime()
	defer cancel()
	found, err := f.admin.ListTopics(ctx, topic)
	if err != nil {
		return 0, err
	}
	if trouble := found[topic].Err; errors.Is(trouble, kerr.UnknownTopicOrPartition) {
		return 0, nil
	}
	return len(found[topic].Partitions), found[topic].Err
}

func (f *franz) createTopic(topic string, partitions int, configs map[string]string) error {
	ctx, cancel := inTime()
	defer cancel()
	wanted := map[string]*string{}
	for key, value := range configs {
		wanted[key] = kadm.StringPtr(value)
	}
	_, err := f.admin.CreateTopic(ctx, int32(partitions), int16(replicas), wanted, topic)
	return err
}

func (f *franz) addPartitions(topic string, total int) error {
	ctx, cancel := inTime()
	defer cancel()
	answer, err := f.admin.UpdatePartitions(ctx, total, topic)
	if err != nil {
		return err
	}
	return answer.Error()
}

func (f *franz) alterConfig(topic, key, value string) error {
	ctx, cancel := inTime()
	defer cancel()
	change := []kadm.AlterConfig{{Op: kadm.SetConfig, Name: key, Value: kadm.StringPtr(value)}}
	answers, err := f.admin.AlterTopicConfigs(ctx, change, topic)
	if err != nil {
		return err
	}
	for _, answer := range answers {
		if answer.Err != nil {
			return answer.Err
		}
	}
	return nil
}

func (f *franz) describeConfig(topic, key string) (string, error) {
	ctx, cancel := inTime()
	defer cancel()
	found, err := f.admin.DescribeTopicConfigs(ctx, topic)
	if err != nil {
		return "", err
	}
	resource, err := found.On(topic, nil)
	if err != nil {
		return "", err
	}
	for _, config := range resource.Configs {
		if config.Key == key {
			return config.MaybeValue(), resource.Err
		}
	}
	return "", fmt.Errorf("no config %s", key)
}

func (f *franz) deleteTopic(topic string) error {
	ctx, cancel := inTime()
	defer cancel()
	_, err := f.admin.DeleteTopic(ctx, topic)
	return err
}

var franzCodecs = map[string]kgo.CompressionCodec{
	"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
	"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
}

func (f *franz) produce(topic string, records []record, codec string, idempotent bool) error {
	options := []kgo.Opt{
		kgo.ProducerBatchCompression(franzCodecs[codec]),
		kgo.ProducerBatchMaxBytes(messageBytesMax/2 + 40_000),
		kgo.AllowAutoTopicCreation(),
		kgo.UnknownTopicRetries(20),
	}
	if !idempotent && !leadersMove {
		options = append(options, kgo.DisableIdempotentWrite())
	}
	if records[0].partition >= 0 {
		options = append(options, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	}
	client, err := f.client(options...)
	if err != nil {
		return err
	}
	defer client.Close()
	var wanted []*kgo.Record
	for _, one := range records {
		made := &kgo.Record{
			Topic: topic, Partition: int32(one.partition), Key: one.key, Value: one.value, Timestamp: one.at,
		}
		for _, h := range one.headers {
			made.Headers = append(made.Headers, kgo.RecordHeader{Key: h.name, Value: h.value})
		}
		wanted = append(wanted, made)
	}
	ctx, cancel := inTime()
	defer cancel()
	return client.ProduceSync(ctx, wanted...).FirstErr()
}

func fromFranz(one *kgo.Record) record {
	made := record{partition: int(one.Partition), offset: one.Offset, key: one.Key, value: one.Value}
	for _, h := range one.Headers {
		made.headers = append(made.headers, header{h.Key, h.Value})
	}
	return made
}

func take(ctx context.Context, client *kgo.Client, count int) ([]record, error) {
	var found []record
	for len(found) < count {
		fetches := client.PollRecords(ctx, count-len(found))
		if err := fetches.Err0(); err != nil {
			return nil, fmt.Errorf("%d of %d records: %w", len(found), count, err)
		}
		fetches.EachRecord(func(one *kgo.Record) { found = append(found, fromFranz(one)) })
	}
	return found, nil
}

func (f *franz) consume(topic string, partitions, count int) ([]record, error) {
	start := map[int32]kgo.Offset{}
	for n := range partitions {
		start[int32(n)] = kgo.NewOffset().AtStart()
	}
	client, err := f.client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: start}))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ctx, cancel := inTime()
	defer cancel()
	return take(ctx, client, count)
}

// The protocol of members: the classic one, or the one whose assignments and sessions are the broker's (KIP-848).
func protocol() kgo.GroupOpt {
	if os.Getenv("GROUP_PROTOCOL") == "consumer" {
		return kgo.ServerSideBalancer()
	}
	return kgo.SessionTimeout(session)
}

func (f *franz) consumeInGroup(topic, group string, count int) ([]record, error) {
	client, err := f.client(
		kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit(), protocol(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ctx, cancel := inTime()
	defer cancel()
	found, err := take(ctx, client, count)
	if err != nil {
		return nil, err
	}
	return found, client.CommitUncommittedOffsets(ctx)
}

type franzMember struct {
	inbox
	client *kgo.Client
	stop   context.CancelFunc
	done   chan struct{}
}

func (f *franz) join(topic, group string) (member, error) {
	ctx, cancel := context.WithCancel(context.Background())
	one := &franzMember{stop: cancel, done: make(chan struct{})}
	held := map[int32]bool{}
	client, err := f.client(
		kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit(), protocol(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, given map[string][]int32) {
			for _, number := range given[topic] {
				held[number] = true
			}
			one.hold(len(held))
		}),
		kgo.OnPartitionsRevoked(func(_ context.Context, _ *kgo.Client, taken map[string][]int32) {
			for _, number := range taken[topic] {
				delete(held, number)
			}
			one.hold(len(held))
		}))
	if err != nil {
		cancel()
		return nil, err
	}
	one.client = client
	go func() {
		defer close(one.done)
		for ctx.Err() == nil {
			client.PollFetches(ctx).EachRecord(func(found *kgo.Record) { one.add(fromFranz(found)) })
		}
	}()
	return one, nil
}

func (m *franzMember) leave() error {
	m.stop()
	<-m.done
	m.client.Close()
	return nil
}

func (f *franz) offsetAt(topic string, at time.Time) (int64, error) {
	ctx, cancel := inTime()
	defer cancel()
	found, err := f.admin.ListOffsetsAfterMilli(ctx, at.UnixMilli(), topic)
	if err != nil {
		return 0, err
	}
	one, present := found.Lookup(topic, 0)
	if !present {
		return 0, errors.New("no answer for partition 0")
	}
	return one.Offset, one.Err
}

type franzReader struct {
	franz  *franz
	topic  string
	client *kgo.Client
}

func (f *franz) reader(topic string) (reader, error) {
	return &franzReader{franz: f, topic: topic}, nil
}

func (r *franzReader) start(at kgo.Offset) error {
	if r.client != nil {
		r.client.Close()
	}
	where := map[string]map[int32]kgo.Offset{r.topic: {0: at}}
	client, err := r.franz.client(kgo.ConsumePartitions(where))
	r.client = client
	return err
}

func (r *franzReader) seekToBeginning() error {
	return r.start(kgo.NewOffset().AtStart())
}

func (r *franzReader) seekToEnd() error {
	ctx, cancel := inTime()
	defer cancel()
	found, err := r.franz.admin.ListEndOffsets(ctx, r.topic)
	if err != nil {
		return err
	}
	end, _ := found.Lookup(r.topic, 0)
	return r.start(kgo.NewOffset().At(end.Offset))
}

func (r *franzReader) next() (record, error) {
	ctx, cancel := inTime()
	defer cancel()
	found, err := take(ctx, r.client, 1)
	if err != nil {
		return record{}, err
	}
	return found[0], nil
}

func (r *franzReader) close() error {
	r.client.Close()
	return nil
}

func (f *franz) tellsEmptyFromNull() bool { return true }
