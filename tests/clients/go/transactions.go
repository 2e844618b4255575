package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"time"
)

const (
	transactionPoll  = time.Second
	transactionGroup = 6 * time.Second
	readPoll         = 100 * time.Millisecond
)

// transactor is a transactional producer, and the consumer whose offsets it commits, if it has a group.
type transactor interface {
	begin() error
	send(topic string, records []record) ([]record, error) // with the offsets that they have
	poll(count int) ([]record, error)                      // records of the source that the transaction is to commit
	commit() error
	abort(offsets bool) error // and go back to the group's offsets; first send those of the transaction
	close()
}

// stream is a consumer without a group, from the beginning.
type stream interface {
	poll(time.Duration) ([]record, error)
	close()
}

// library makes both.
type library interface {
	open(command order) (transactor, error)
	stream(topic string, partitions int, committed bool) (stream, error)
	isFatal(err error) bool
}

var libraries = map[string]func(bootstrap string) library{
	"franz-go": func(bootstrap string) library { return newFranz(bootstrap).(*franz) },
	"sarama":   func(bootstrap string) library { return newSarama(bootstrap).(*saramaClient) },
}

// order is a command; tests/clients/transactions/driver.py tells what each is.
type order struct {
	Do         string  `json:"do"`
	Producer   string  `json:"producer"`
	ID         string  `json:"id"`
	TimeoutMs  int     `json:"timeout_ms"`
	Group      string  `json:"group"`
	Source     string  `json:"source"`
	Max        int     `json:"max"`
	Topic      string  `json:"topic"`
	Records    [][]any `json:"records"`
	Partitions int     `json:"partitions"`
	Isolation  string  `json:"isolation"`
	Count      int     `json:"count"`
	Seconds    float64 `json:"seconds"`
	QuietMs    int     `json:"quiet_ms"`
	Offsets    bool    `json:"offsets"`
}

type driver struct {
	library  library
	sessions map[string]transactor
}

// drive answers commands until standard input ends.
func drive(made library) {
	all := driver{made, map[string]transactor{}}
	in := bufio.NewReader(os.Stdin)
	out := json.NewEncoder(os.Stdout)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var command order
		if err := json.Unmarshal(line, &command); err != nil {
			panic(err)
		}
		answer := map[string]any{}
		if found, err := all.obey(command); err != nil {
			answer["error"], answer["fatal"] = err.Error(), made.isFatal(err)
		} else {
			answer["records"] = told(found)
		}
		if out.Encode(answer) != nil {
			return
		}
	}
}

func told(records []record) [][]any {
	rows := [][]any{}
	for _, one := range records {
		rows = append(rows, []any{one.partition, one.offset, string(one.value)})
	}
	return rows
}

func (d driver) obey(command order) ([]record, error) {
	if command.Do == "read" {
		return d.read(command)
	}
	session := d.sessions[command.Producer]
	switch command.Do {
	case "open":
		if session != nil {
			session.close()
		}
		opened, err := d.library.open(command)
		if err == nil {
			d.sessions[command.Producer] = opened
		} else {
			delete(d.sessions, command.Producer)
		}
		return nil, err
	case "begin":
		return nil, session.begin()
	case "send":
		var records []record
		for _, one := range command.Records {
			records = append(records, record{partition: int(one[0].(float64)), value: []byte(one[1].(string))})
		}
		return session.send(command.Topic, records)
	case "poll":
		return session.poll(command.Max)
	case "commit":
		return nil, session.commit()
	case "abort":
		return nil, session.abort(command.Offsets)
	case "close":
		session.close()
		delete(d.sessions, command.Producer)
		return nil, nil
	}
	return nil, fmt.Errorf("no such command: %s", command.Do)
}

func (d driver) read(command order) ([]record, error) {
	from, err := d.library.stream(command.Topic, command.Partitions, command.Isolation == "read_committed")
	if err != nil {
		return nil, err
	}
	defer from.close()
	var found []record
	late := time.Now().Add(time.Duration(command.Seconds * float64(time.Second)))
	for len(found) < command.Count && time.Now().Before(late) {
		records, err := from.poll(readPoll)
		if err != nil {
			return nil, err
		}
		found = append(found, records...)
	}
	quiet := time.Now().Add(time.Duration(command.QuietMs) * time.Millisecond)
	for time.Now().Before(quiet) {
		records, err := from.poll(readPoll)
		if err != nil {
			return nil, err
		}
		found = append(found, records...)
	}
	return found, nil
}
