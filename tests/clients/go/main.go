// Command clients runs the scenarios with one of three Go clients:
//
//	clients CLIENT BOOTSTRAP PREFIX SCENARIO...
//
// It prints one JSON line per scenario: {"scenario", "status", "detail", "seconds"}. SECURITY in the
// environment names a file with protocol, login and certificates. With
//
//	clients CLIENT transactions BOOTSTRAP
//
// it does transactions as it is told on standard input, and with
//
//	clients franz-go shares BOOTSTRAP GROUP MEMBERS SEED
//
// it runs members of a share group.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
)

type line struct {
	Scenario string  `json:"scenario"`
	Status   string  `json:"status"`
	Detail   string  `json:"detail"`
	Seconds  float64 `json:"seconds"`
}

var adapters = map[string]func(bootstrap string) adapter{
	"franz-go": newFranz,
	"sarama":   newSarama,
	"kafka-go": newSegment,
}

// clients makes its client for the first scenario, and keeps it.
type clients struct {
	made      adapter
	name      string
	bootstrap string
}

// run gives one scenario the time it needs and turns a panic of a client into a failure.
func (c *clients) run(topic, name string) (err error) {
	defer func() {
		if trouble := recover(); trouble != nil {
			err = fmt.Errorf("panic: %v", trouble)
		}
	}()
	if c.made == nil {
		c.made = adapters[c.name](c.bootstrap)
	}
	return scenarios[name](c.made, topic)
}

func main() {
	if len(os.Args) < 4 {
		fmt.Fprintln(os.Stderr, "usage: clients CLIENT BOOTSTRAP PREFIX SCENARIO...")
		os.Exit(2)
	}
	if os.Args[2] == "transactions" {
		drive(libraries[os.Args[1]](os.Args[3]))
		return
	}
	if os.Args[2] == "shares" {
		shares(os.Args[3], os.Args[4], os.Args[5], os.Args[6])
		return
	}
	client := clients{name: os.Args[1], bootstrap: os.Args[2]}
	out := json.NewEncoder(os.Stdout)
	for _, name := range os.Args[4:] {
		topic := os.Args[3] + "-" + strings.TrimSuffix(strings.TrimSuffix(name, "-before"), "-after")
		started := time.Now()
		said := line{Scenario: name, Status: "ok"}
		if err := client.run(topic, name); err != nil {
			said.Status, said.Detail = "fail", err.Error()
		}
		said.Seconds = float64(time.Since(started).Milliseconds()) / 1000
		if err := out.Encode(said); err != nil {
			os.Exit(1)
		}
	}
}
