// One fake broker of franz-go's pkg/kfake on 127.0.0.1; it prints its address, and ends with its input.
//
// The broker is a child process on the parent's listener: when a request ends it, the parent says so on
// its standard error and starts another one, and connections wait in between.
package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"

	"github.com/twmb/franz-go/pkg/kfake"
)

const inherited = 3 // the first descriptor of exec.Cmd.ExtraFiles

func main() {
	run := parent
	if len(os.Args) > 1 && os.Args[1] == "child" {
		run = child
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func parent() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	file, err := listener.(*net.TCPListener).File()
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr())
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(ended)
	}()
	for {
		var complaint strings.Builder
		broker := exec.Command(os.Args[0], "child")
		broker.Stderr = &complaint
		broker.ExtraFiles = []*os.File{file}
		input, err := broker.StdinPipe() // It ends with this process, however that ends.
		if err != nil {
			return err
		}
		if err := broker.Start(); err != nil {
			return err
		}
		died := make(chan error, 1)
		go func() { died <- broker.Wait() }()
		select {
		case <-ended:
			_ = input.Close()
			<-died
			return nil
		case err := <-died:
			fmt.Fprintf(os.Stderr, "the broker ended: %v\n%s\n", err, complaint.String())
		}
	}
}

func child() error {
	cluster, err := kfake.NewCluster(
		kfake.NumBrokers(1),
		kfake.AllowAutoTopicCreation(),
		kfake.DefaultNumPartitions(4),
		kfake.ListenFn(func(_, _ string) (net.Listener, error) {
			return net.FileListener(os.NewFile(inherited, "listener"))
		}),
	)
	if err != nil {
		return err
	}
	defer cluster.Close()
	_, _ = io.Copy(io.Discard, os.Stdin)
	return nil
}
