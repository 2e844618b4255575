// A Kafka for tests of Go: one process, its data in memory. Needs kraft-wire on the PATH.
package kafkatest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// Kafka is a node that ends with its test.
type Kafka struct {
	BootstrapServers string
	rules            string
}

// Start starts a node and waits until it serves.
func Start(t *testing.T) *Kafka {
	t.Helper()
	ready := filepath.Join(t.TempDir(), "ready.json")
	command := exec.Command("kraft-wire", "server", "--ephemeral", "--listen", "127.0.0.1:0",
		"--control", "127.0.0.1:0", "--ready-file", ready)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		command.Process.Signal(syscall.SIGTERM)
		command.Wait()
	})
	for until := time.Now().Add(time.Minute); time.Now().Before(until); time.Sleep(5 * time.Millisecond) {
		text, err := os.ReadFile(ready)
		if err != nil {
			continue
		}
		var facts struct {
			Listeners map[string]string
			Control   string
		}
		if err := json.Unmarshal(text, &facts); err != nil {
			t.Fatal(err)
		}
		return &Kafka{facts.Listeners["PLAINTEXT"], "http://" + facts.Control + "/rules"}
	}
	t.Fatal("kraft-wire is not ready")
	return nil
}

// Rule is a fault rule as the control port describes it.
type Rule struct{ Number, Fired int }

// Inject adds a fault rule, see docs/FAULTS.md.
func (kafka *Kafka) Inject(t *testing.T, rule map[string]any) Rule {
	t.Helper()
	body, _ := json.Marshal(rule)
	var added []Rule
	response, err := http.Post(kafka.rules, "application/json", bytes.NewReader(body))
	read(t, response, err, &added)
	return added[0]
}

// Fired returns how often a rule has fired, once it has.
func (kafka *Kafka) Fired(t *testing.T, rule Rule) int {
	t.Helper()
	response, err := http.Get(fmt.Sprintf("%s/%d?wait=10", kafka.rules, rule.Number))
	read(t, response, err, &rule)
	return rule.Fired
}

func read(t *testing.T, response *http.Response, err error, into any) {
	t.Helper()
	if err == nil {
		defer response.Body.Close()
		err = json.NewDecoder(response.Body).Decode(into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// apiVersions stands for the client of your choice: it returns the error code of the response.
func apiVersions(kafka *Kafka) (int16, error) {
	connection, err := net.Dial("tcp", kafka.BootstrapServers)
	if err != nil {
		return 0, err
	}
	defer connection.Close()
	connection.Write([]byte{0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 7, 0xff, 0xff})
	head := make([]byte, 10)
	_, err = io.ReadFull(connection, head)
	return int16(head[8])<<8 | int16(head[9]), err
}

func TestFaultIsInjectedOnce(t *testing.T) {
	kafka := Start(t)
	rule := kafka.Inject(t, map[string]any{"disconnect": true, "api": "ApiVersions", "when": "once"})
	if _, err := apiVersions(kafka); err != io.EOF {
		t.Fatalf("%v, not the end of the connection", err)
	}
	if fired := kafka.Fired(t, rule); fired != 1 {
		t.Fatalf("fired %d times", fired)
	}
	if code, err := apiVersions(kafka); code != 0 || err != nil {
		t.Fatal(code, err)
	}
}
