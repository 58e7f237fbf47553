// The program database runs a TCP server for each Database object of one host, and ends it when the object is deleted:
// connections may finish until the deadline that the user named. With the argument guest it is such a server.
package main

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/exeunt-io/exeunt/examples/database/server"
	"github.com/exeunt-io/exeunt/examples/internal/controller"
	"github.com/exeunt-io/exeunt/examples/internal/guest"
)

// A server drains after SIGTERM, and closes its connections with a message after SIGINT, as PostgreSQL does.
var kind = controller.Kind{
	Program:   "database",
	Resource:  schema.GroupVersionResource{Group: "example.exeunt.io", Version: "v1", Resource: "databases"},
	Finalizer: "example.exeunt.io/server",
	Command:   command,
	PowerOff:  []syscall.Signal{syscall.SIGINT, syscall.SIGKILL},
}

func main() { os.Exit(controller.Main(kind, serve)) }

// command opens the port here, so that a port that is taken is an error of the object, and passes it to the server.
func command(object *unstructured.Unstructured) (guest.Command, error) {
	port, found, err := unstructured.NestedInt64(object.Object, "spec", "port")
	if err == nil && !found {
		err = errors.New("spec.port is missing")
	}
	if err != nil {
		return guest.Command{}, err
	}
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.FormatInt(port, 10)))
	if err != nil {
		return guest.Command{}, err
	}
	defer func() { _ = listener.Close() }()
	file, err := listener.(*net.TCPListener).File()
	if err != nil {
		return guest.Command{}, err
	}
	return guest.Command{Args: []string{controller.GuestCommand, "--name=" + object.GetNamespace() + "/" + object.GetName()},
		Files: []*os.File{file}}, nil
}

// listenerFD is the file descriptor of the listener in a guest.
const listenerFD = 4

// serve is the server of one object.
func serve(args []string) error {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	if err := guest.Announce(); err != nil {
		return err
	}
	flags := flag.NewFlagSet(controller.GuestCommand, flag.ContinueOnError)
	flags.String("name", "", "name of the object, for who looks at the list of processes")
	if err := flags.Parse(args); err != nil {
		return err
	}
	file := os.NewFile(listenerFD, "listener")
	listener, err := net.FileListener(file)
	if err != nil {
		return fmt.Errorf("find the listener: %w", err)
	}
	if err := file.Close(); err != nil { // as long as it is open, the kernel accepts connections
		return err
	}
	fmt.Println("the server runs")
	databases := server.New(listener)
	go func() {
		for received := range signals {
			if received == syscall.SIGINT {
				databases.Close()
			}
			databases.Drain()
		}
	}()
	return databases.Serve()
}
