package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	sharePoll  = 200 * time.Millisecond
	shareFlush = 60 * time.Second
)

var (
	shareLock sync.Mutex
	shareOut  = bufio.NewWriter(os.Stdout)
)

// tell prints lines; those of one call stay together.
func tell(lines []string) {
	shareLock.Lock()
	defer shareLock.Unlock()
	for _, line := range lines {
		fmt.Fprintln(shareOut, line)
	}
	shareOut.Flush()
}

// shareMember is one share consumer, and which partitions refused its last acknowledgements.
type shareMember struct {
	client  *kgo.Client
	chance  *rand.Rand
	mutex   sync.Mutex
	refused map[int32]bool
}

// shares runs members of one share group until the end of standard input; the topic has the name of
// the group. Its lines are those of judge.ShareDriver, a Java program.
func shares(bootstrap, group, members, seed string) {
	count, _ := strconv.Atoi(members)
	first, _ := strconv.ParseInt(seed, 10, 64)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for number := 0; number < count; number++ {
		one := &shareMember{chance: rand.New(rand.NewSource(first + int64(number)))}
		client, err := kgo.NewClient(
			kgo.SeedBrokers(strings.Split(bootstrap, ",")...), kgo.ShareGroup(group), kgo.ConsumeTopics(group),
			kgo.ShareAckCallback(one.answered))
		if err != nil {
			panic(err)
		}
		one.client = client
		running.Add(1)
		go func() {
			defer running.Done()
			for ctx.Err() == nil {
				one.round()
			}
			client.Close()
		}()
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	cancel()
	running.Wait()
}

func (m *shareMember) answered(_ *kgo.Client, results kgo.ShareAckResults) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for _, result := range results {
		if result.Err != nil {
			m.refused[result.Partition] = true
		}
	}
}

// round releases one record in ten and accepts the others.
func (m *shareMember) round() {
	m.mutex.Lock()
	m.refused = map[int32]bool{}
	m.mutex.Unlock()
	poll, cancel := context.WithTimeout(context.Background(), sharePoll)
	fetches := m.client.PollFetches(poll)
	cancel()
	var delivered, outcomes []string
	var accepted []*kgo.Record
	fetches.EachRecord(func(r *kgo.Record) {
		delivered = append(delivered, fmt.Sprintf("d %s %d", r.Value, r.DeliveryCount()))
		if m.chance.Intn(10) == 0 {
			r.Ack(kgo.AckRelease)
			return
		}
		r.Ack(kgo.AckAccept)
		accepted = append(accepted, r)
	})
	tell(delivered)
	flush, cancel := context.WithTimeout(context.Background(), shareFlush)
	err := m.client.FlushAcks(flush)
	cancel()
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for _, r := range accepted {
		kind := "a"
		if err != nil || m.refused[r.Partition] {
			kind = "u"
		}
		outcomes = append(outcomes, fmt.Sprintf("%s %s", kind, r.Value))
	}
	tell(outcomes)
}
