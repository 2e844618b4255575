package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math/rand"
	"reflect"
	"slices"
	"sort"
	"strings"
	"time"
)

const (
	largeBytes   = 1_000_000
	restartTotal = 100
	restartFirst = 40
	placingTime  = 20 * time.Second
)

var (
	filler   = strings.Repeat(" kafka wire", 10)
	baseTime = time.UnixMilli(1_700_000_000_000)
)

type scenario func(client adapter, topic string) error

var scenarios = map[string]scenario{
	"connect":        connect,
	"metadata":       metadata,
	"codec-none":     codec("none"),
	"codec-gzip":     codec("gzip"),
	"codec-snappy":   codec("snappy"),
	"codec-lz4":      codec("lz4"),
	"codec-zstd":     codec("zstd"),
	"keys":           keys,
	"headers":        headers,
	"nulls":          nulls,
	"large":          large,
	"idempotent":     idempotent,
	"group":          group,
	"timestamps":     timestamps,
	"seek":           seek,
	"topics":         topics,
	"auto-create":    autoCreate,
	"partitions-200": partitions200,
	"restart-before": restartBefore,
	"restart-after":  restartAfter,
}

func expect(actual, expected any, what string) error {
	if reflect.DeepEqual(actual, expected) {
		return nil
	}
	return fmt.Errorf("%s: got %.200v, expected %.200v", what, actual, expected)
}

// first returns the first error of a list of expectations.
func first(failures ...error) error {
	for _, failure := range failures {
		if failure != nil {
			return failure
		}
	}
	return nil
}

func numbered(start, count int) []record {
	var made []record
	for n := start; n < start+count; n++ {
		made = append(made, record{value: fmt.Appendf(nil, "record %06d%s", n, filler)})
	}
	return made
}

func texts(records []record) []string {
	var found []string
	for _, one := range records {
		found = append(found, string(one.value))
	}
	return found
}

func distinct(found []string) []string {
	slices.Sort(found)
	return slices.Compact(found)
}

func sorted(found []string) []string {
	sort.Strings(found)
	return found
}

func create(client adapter, topic string, partitions int) error {
	if err := placed(func() error { return client.createTopic(topic, partitions, nil) }); err != nil {
		return fmt.Errorf("create: %w", err)
	}
	return shows(client, topic, partitions)
}

// placed makes a change that places replicas; again while a broker is about to stop. Kafka places none
// on it, and refuses what needs all brokers, which no client tries again by itself.
func placed(change func() error) error {
	deadline := time.Now().Add(placingTime)
	for {
		err := change()
		if err == nil || !leadersMove || time.Now().After(deadline) {
			return err
		}
		words := strings.NewReplacer("_", " ", "-", " ").Replace(strings.ToLower(err.Error()))
		if !strings.Contains(words, "replication factor") {
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func shows(client adapter, topic string, partitions int) error {
	return waitUntil(fmt.Sprintf("the topic shows %d partitions", partitions), func() (bool, error) {
		found, err := client.partitions(topic)
		return found == partitions, err
	})
}

// through creates a topic, produces to it and consumes the same number of records.
func through(
	client adapter, topic string, partitions int, sent []record, codec string, idempotent bool,
) ([]record, error) {
	if err := create(client, topic, partitions); err != nil {
		return nil, err
	}
	if err := client.produce(topic, sent, codec, idempotent); err != nil {
		return nil, fmt.Errorf("produce: %w", err)
	}
	got, err := client.consume(topic, partitions, len(sent))
	if err != nil {
		return nil, fmt.Errorf("consume: %w", err)
	}
	return got, nil
}

func connect(client adapter, topic string) error {
	found, err := client.brokers()
	if err != nil {
		return err
	}
	return expect(len(found) > 0, true, "a broker")
}

func metadata(client adapter, topic string) error {
	if err := create(client, topic, 3); err != nil {
		return err
	}
	found, err := client.brokers()
	if err != nil {
		return err
	}
	enough := len(found) == replicas || (leadersMove && len(found) == replicas-1)
	for _, one := range found {
		enough = enough && strings.HasPrefix(one, "127.0.0.1:")
	}
	return expect(enough, true, fmt.Sprint("brokers ", found))
}

func codec(name string) scenario {
	return func(client adapter, topic string) error {
		sent := numbered(0, 300)
		got, err := through(client, topic, 1, sent, name, false)
		if err != nil {
			return err
		}
		return expect(texts(got), texts(sent), "values")
	}
}

func keys(client adapter, topic string) error {
	var sent []record
	for n := range 170 {
		key := fmt.Appendf(nil, "key-%d", n%17)
		sent = append(sent, record{partition: anyPartition, key: key, value: fmt.Appendf(nil, "%s=%d", key, n)})
	}
	got, err := through(client, topic, 4, sent, "none", false)
	if err != nil {
		return err
	}
	places := map[string]map[int]bool{}
	for _, one := range got {
		if !bytes.HasPrefix(one.value, append(one.key, '=')) {
			return fmt.Errorf("key %q with value %q", one.key, one.value)
		}
		if places[string(one.key)] == nil {
			places[string(one.key)] = map[int]bool{}
		}
		places[string(one.key)][one.partition] = true
	}
	for key, found := range places {
		if len(found) != 1 {
			return fmt.Errorf("key %s is on %d partitions", key, len(found))
		}
	}
	return expect(sorted(texts(got)), sorted(texts(sent)), "values")
}

func headers(client adapter, topic string) error {
	given := []header{{"a", []byte("1")}, {"b", []byte{}}, {"a", []byte{1, 255}}, {"ü", []byte("x")}}
	sent := []record{{value: []byte("with"), headers: given}, {value: []byte("without")}}
	got, err := through(client, topic, 1, sent, "none", false)
	if err != nil {
		return err
	}
	for i, one := range got[0].headers {
		if i >= len(given) || one.name != given[i].name || !bytes.Equal(one.value, given[i].value) {
			return fmt.Errorf("header %d: got %v", i, one)
		}
	}
	return first(
		expect(len(got[0].headers), len(given), "headers"), expect(len(got[1].headers), 0, "no headers"))
}

func nulls(client adapter, topic string) error {
	sent := []record{
		{key: []byte("deleted"), value: nil},
		{key: []byte("empty"), value: []byte{}},
		{key: nil, value: []byte("no key")},
	}
	got, err := through(client, topic, 1, sent, "none", false)
	if err != nil {
		return err
	}
	return first(
		expect(got[0].value == nil, true, "a null value is null"),
		expect(got[1].value != nil || !client.tellsEmptyFromNull(), true, "an empty value is not null"),
		expect(got[2].key == nil, true, "a null key is null"),
		expect(texts(got), texts(sent), "values"))
}

func large(client adapter, topic string) error {
	source := rand.New(rand.NewSource(7))
	var sent []record
	for range 5 {
		value := make([]byte, largeBytes)
		source.Read(value)
		sent = append(sent, record{value: value})
	}
	got, err := through(client, topic, 1, sent, "none", false)
	if err != nil {
		return err
	}
	for i := range sent {
		if sha256.Sum256(got[i].value) != sha256.Sum256(sent[i].value) {
			return fmt.Errorf("record %d differs", i)
		}
	}
	return nil
}

func idempotent(client adapter, topic string) error {
	var sent []record
	wanted := make([][]string, 2)
	for n := range 1000 {
		value := fmt.Sprintf("%06d", n)
		sent = append(sent, record{partition: n % 2, value: []byte(value)})
		wanted[n%2] = append(wanted[n%2], value)
	}
	got, err := through(client, topic, 2, sent, "none", true)
	if err != nil {
		return err
	}
	found := make([][]string, 2)
	for _, one := range got {
		found[one.partition] = append(found[one.partition], string(one.value))
	}
	return expect(found, wanted, "values in order")
}

func group(client adapter, topic string) error {
	if err := create(client, topic, 6); err != nil {
		return err
	}
	var members []member
	for range 3 {
		one, err := client.join(topic, topic)
		if err != nil {
			return err
		}
		members = append(members, one)
	}
	if err := eachHolds(members, 2); err != nil {
		return err
	}
	if err := members[0].leave(); err != nil {
		return fmt.Errorf("leave: %w", err)
	}
	staying := members[1:]
	if err := eachHolds(staying, 3); err != nil {
		return err
	}
	var sent []record
	for n := range 60 {
		sent = append(sent, record{partition: n % 6, value: fmt.Append(nil, n)})
	}
	if err := client.produce(topic, sent, "none", false); err != nil {
		return err
	}
	all := func() []string {
		found := texts(append(staying[0].received(), staying[1].received()...))
		if leadersMove {
			return distinct(found)
		}
		return found
	}
	arrived := func() (bool, error) { return len(all()) >= len(sent), nil }
	if err := waitUntil("all 60 records arrived", arrived); err != nil {
		return err
	}
	failure := expect(sorted(all()), sorted(texts(sent)), "values")
	return first(failure, staying[0].leave(), staying[1].leave())
}

func eachHolds(members []member, count int) error {
	return waitUntil(fmt.Sprintf("%d members hold %d partitions each", len(members), count), func() (bool, error) {
		for _, one := range members {
			if one.held() != count {
				return false, nil
			}
		}
		return true, nil
	})
}

func restartBefore(client adapter, topic string) error {
	if err := create(client, topic, 1); err != nil {
		return err
	}
	if err := client.produce(topic, numbered(0, restartTotal), "none", false); err != nil {
		return err
	}
	got, err := client.consumeInGroup(topic, topic, restartFirst)
	if err != nil {
		return err
	}
	return expect(texts(got), texts(numbered(0, restartFirst)), "the first values")
}

func restartAfter(client adapter, topic string) error {
	rest := restartTotal - restartFirst
	got, err := client.consumeInGroup(topic, topic, rest)
	if err != nil {
		return err
	}
	return expect(texts(got), texts(numbered(restartFirst, rest)), "the remaining values")
}

func timestamps(client adapter, topic string) error {
	if err := create(client, topic, 1); err != nil {
		return err
	}
	sent := numbered(0, 20)
	for n := range sent {
		sent[n].at = baseTime.Add(time.Duration(n) * time.Second)
	}
	if err := client.produce(topic, sent, "none", false); err != nil {
		return err
	}
	for after, wanted := range map[int]int64{0: 0, 5000: 5, 5001: 6, 19000: 19} {
		found, err := client.offsetAt(topic, baseTime.Add(time.Duration(after)*time.Millisecond))
		if err != nil {
			return err
		}
		if found != wanted {
			return fmt.Errorf("offset %d ms after the first: got %d, expected %d", after, found, wanted)
		}
	}
	found, err := client.offsetAt(topic, baseTime.Add(time.Minute))
	if err != nil {
		return err
	}
	return expect(found == noOffset || found == 20, true, fmt.Sprint("after the last: ", found))
}

func seek(client adapter, topic string) error {
	if err := create(client, topic, 1); err != nil {
		return err
	}
	if err := client.produce(topic, numbered(0, 30), "none", false); err != nil {
		return err
	}
	from, err := client.reader(topic)
	if err != nil {
		return err
	}
	if err := from.seekToEnd(); err != nil {
		return err
	}
	if err := client.produce(topic, numbered(30, 1), "none", false); err != nil {
		return err
	}
	last, err := from.next()
	if err != nil {
		return err
	}
	if err := from.seekToBeginning(); err != nil {
		return err
	}
	begin, err := from.next()
	if err != nil {
		return err
	}
	return first(
		expect(last.offset, int64(30), "the offset after seek to end"),
		expect(begin.offset, int64(0), "the offset after seek to beginning"), from.close())
}

func topics(client adapter, topic string) error {
	configs := map[string]string{"retention.ms": "3600000"}
	if err := placed(func() error { return client.createTopic(topic, 3, configs) }); err != nil {
		return err
	}
	if err := shows(client, topic, 3); err != nil {
		return err
	}
	if err := hasRetention(client, topic, "3600000"); err != nil {
		return err
	}
	if err := placed(func() error { return client.addPartitions(topic, 5) }); err != nil {
		return err
	}
	if err := shows(client, topic, 5); err != nil {
		return err
	}
	if err := client.alterConfig(topic, "retention.ms", "7200000"); err != nil {
		return err
	}
	if err := hasRetention(client, topic, "7200000"); err != nil {
		return err
	}
	if err := client.deleteTopic(topic); err != nil {
		return err
	}
	return shows(client, topic, 0)
}

func hasRetention(client adapter, topic, wanted string) error {
	return waitUntil("retention.ms is "+wanted, func() (bool, error) {
		found, err := client.describeConfig(topic, "retention.ms")
		return found == wanted, err
	})
}

func autoCreate(client adapter, topic string) error {
	sent := []record{{partition: anyPartition, value: []byte("first")}}
	if err := client.produce(topic, sent, "none", false); err != nil {
		return err
	}
	count, err := client.partitions(topic)
	if err != nil {
		return err
	}
	got, err := client.consume(topic, count, 1)
	if err != nil {
		return err
	}
	return expect(texts(got), []string{"first"}, "values")
}

func partitions200(client adapter, topic string) error {
	var sent []record
	for n := range 200 {
		sent = append(sent, record{partition: n, value: fmt.Append(nil, n)})
	}
	got, err := through(client, topic, 200, sent, "none", false)
	if err != nil {
		return err
	}
	places := map[int]bool{}
	for _, one := range got {
		places[one.partition] = true
	}
	return expect(len(places), 200, "partitions that gave a record")
}
