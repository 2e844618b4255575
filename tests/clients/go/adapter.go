package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"
)

const (
	operationTime   = 60 * time.Second
	anyPartition    = -1
	noOffset        = int64(-1)
	messageBytesMax = 2_000_000
)

// replicas is what every topic has that a scenario creates.
var replicas = replicasWanted()

// leadersMove says that brokers restart meanwhile: whoever retries then writes once and in order only
// as an idempotent producer, and a member that joins again reads again what nobody has committed.
var leadersMove = replicas > 1

// session is that of a member: so long a new coordinator waits for one that has left, if it was told
// by its predecessor only in memory.
var session = sessionWanted()

func sessionWanted() time.Duration {
	if leadersMove {
		return 6 * time.Second
	}
	return 45 * time.Second
}

func replicasWanted() int {
	if count, err := strconv.Atoi(os.Getenv("REPLICAS")); err == nil {
		return count
	}
	return 1
}

type header struct {
	name  string
	value []byte
}

type record struct {
	partition int
	offset    int64
	key       []byte
	value     []byte
	headers   []header
	at        time.Time
}

// member is one running member of a consumer group.
type member interface {
	held() int
	received() []record
	leave() error
}

// reader is a consumer of partition 0 that seeks.
type reader interface {
	seekToBeginning() error
	seekToEnd() error
	next() (record, error)
	close() error
}

// adapter is what one client must be able to do for the scenarios to be written once.
type adapter interface {
	brokers() ([]string, error)
	partitions(topic string) (int, error) // 0 if there is no such topic
	createTopic(topic string, partitions int, configs map[string]string) error
	addPartitions(topic string, total int) error
	alterConfig(topic, key, value string) error
	describeConfig(topic, key string) (string, error)
	deleteTopic(topic string) error
	produce(topic string, records []record, codec string, idempotent bool) error
	consume(topic string, partitions, count int) ([]record, error)
	consumeInGroup(topic, group string, count int) ([]record, error)
	join(topic, group string) (member, error)
	offsetAt(topic string, at time.Time) (int64, error) // noOffset if there is none
	reader(topic string) (reader, error)
	tellsEmptyFromNull() bool // whether a consumed empty value differs from a null one
}

// inbox collects what a member's goroutine received.
type inbox struct {
	mutex   sync.Mutex
	records []record
	count   int
}

func (box *inbox) add(one record) {
	box.mutex.Lock()
	defer box.mutex.Unlock()
	box.records = append(box.records, one)
}

func (box *inbox) received() []record {
	box.mutex.Lock()
	defer box.mutex.Unlock()
	return append([]record(nil), box.records...)
}

func (box *inbox) hold(count int) {
	box.mutex.Lock()
	defer box.mutex.Unlock()
	box.count = count
}

func (box *inbox) held() int {
	box.mutex.Lock()
	defer box.mutex.Unlock()
	return box.count
}

// waitUntil polls a condition; what names it when it does not hold in time.
func waitUntil(what string, condition func() (bool, error)) error {
	deadline := time.Now().Add(2 * operationTime)
	for {
		holds, err := condition()
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		if holds {
			return nil
		}
		if time.Now().After(deadline) {
			return errors.New("not in time: " + what)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
