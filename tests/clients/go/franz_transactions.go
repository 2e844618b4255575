package main

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// errNotCommitted is what a session says whose group lost partitions meanwhile: it has aborted.
var errNotCommitted = errors.New("the session has aborted instead of committing")

type franzTransactor struct {
	client *kgo.Client
	group  *kgo.GroupTransactSession // nil without a group
	// ended says that a session has ended its transaction although the commit failed.
	ended bool
}

func (f *franz) open(command order) (transactor, error) {
	options := []kgo.Opt{
		kgo.TransactionalID(command.ID),
		kgo.TransactionTimeout(time.Duration(command.TimeoutMs) * time.Millisecond),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
	}
	ctx, cancel := inTime()
	defer cancel()
	if command.Group == "" {
		client, err := f.client(options...)
		if err != nil {
			return nil, err
		}
		// It initialises itself only with the first transaction; a twin has to fence at once.
		_, _, err = client.ProducerID(ctx)
		return &franzTransactor{client: client}, err
	}
	options = append(options, kgo.ConsumerGroup(command.Group), kgo.ConsumeTopics(command.Source),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.SessionTimeout(transactionGroup),
		kgo.HeartbeatInterval(time.Second), kgo.RequireStableFetchOffsets(),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.SeedBrokers(f.seeds()...))
	group, err := kgo.NewGroupTransactSession(options...)
	if err != nil {
		return nil, err
	}
	_, _, err = group.Client().ProducerID(ctx)
	return &franzTransactor{client: group.Client(), group: group}, err
}

func (t *franzTransactor) begin() error {
	t.ended = false
	if t.group != nil {
		return t.group.Begin()
	}
	return t.client.BeginTransaction()
}

func (t *franzTransactor) send(topic string, records []record) ([]record, error) {
	ctx, cancel := inTime()
	defer cancel()
	var wanted []*kgo.Record
	for _, one := range records {
		wanted = append(wanted, &kgo.Record{Topic: topic, Partition: int32(one.partition), Value: one.value})
	}
	err := t.client.ProduceSync(ctx, wanted...).FirstErr()
	var placed []record
	for _, one := range wanted {
		placed = append(placed, fromFranz(one))
	}
	return placed, err
}

func (t *franzTransactor) poll(count int) ([]record, error) {
	ctx, cancel := context.WithTimeout(context.Background(), transactionPoll)
	defer cancel()
	var found []record
	t.group.PollRecords(ctx, count).EachRecord(func(one *kgo.Record) { found = append(found, fromFranz(one)) })
	return found, nil
}

func (t *franzTransactor) end(commit kgo.TransactionEndTry) error {
	ctx, cancel := inTime()
	defer cancel()
	if t.group == nil {
		return t.client.EndTransaction(ctx, commit)
	}
	if t.ended {
		return nil
	}
	committed, err := t.group.End(ctx, commit)
	if err == nil && bool(commit) && !committed {
		t.ended = true
		return errNotCommitted
	}
	return err
}

func (t *franzTransactor) commit() error { return t.end(kgo.TryCommit) }

// abort sends no offsets: a session has them sent only where it commits.
func (t *franzTransactor) abort(bool) error {
	ctx, cancel := inTime()
	defer cancel()
	if err := t.client.AbortBufferedRecords(ctx); err != nil {
		return err
	}
	return t.end(kgo.TryAbort)
}

func (t *franzTransactor) close() { t.client.Close() }

type franzStream struct{ client *kgo.Client }

func (f *franz) stream(topic string, partitions int, committed bool) (stream, error) {
	start := map[int32]kgo.Offset{}
	for n := range partitions {
		start[int32(n)] = kgo.NewOffset().AtStart()
	}
	level := kgo.ReadUncommitted()
	if committed {
		level = kgo.ReadCommitted()
	}
	places := map[string]map[int32]kgo.Offset{topic: start}
	client, err := f.client(kgo.ConsumePartitions(places), kgo.FetchIsolationLevel(level))
	return franzStream{client}, err
}

func (s franzStream) poll(wait time.Duration) ([]record, error) {
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	var found []record
	s.client.PollFetches(ctx).EachRecord(func(one *kgo.Record) { found = append(found, fromFranz(one)) })
	return found, nil
}

func (s franzStream) close() { s.client.Close() }

// Errors of a producer that has failed stay; a new one is needed.
func (f *franz) isFatal(err error) bool {
	for _, fatal := range []error{
		kerr.ProducerFenced, kerr.InvalidProducerEpoch, kerr.InvalidProducerIDMapping, kerr.InvalidTxnState,
		kgo.ErrClientClosed,
	} {
		if errors.Is(err, fatal) {
			return true
		}
	}
	return false
}
