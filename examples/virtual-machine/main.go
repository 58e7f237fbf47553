// The program virtual-machine runs the guests of VirtualMachine objects on one host, and shuts them down when the objects
// are deleted: gracefully until the deadline that the user named. With the argument guest it is such a guest.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/exeunt-io/exeunt/examples/internal/controller"
	"github.com/exeunt-io/exeunt/examples/internal/guest"
)

var kind = controller.Kind{
	Program:   "virtual-machine",
	Resource:  schema.GroupVersionResource{Group: "example.exeunt.io", Version: "v1", Resource: "virtualmachines"},
	Finalizer: "example.exeunt.io/guest",
	Command:   command,
	PowerOff:  []syscall.Signal{syscall.SIGKILL},
}

func main() { os.Exit(controller.Main(kind, runGuest)) }

// command returns the command of a guest. A real one would run a hypervisor. The object names no program: whoever may
// create a VirtualMachine could run any on the host.
func command(object *unstructured.Unstructured) (guest.Command, error) {
	seconds, _, err := unstructured.NestedInt64(object.Object, "spec", "guest", "shutdownSeconds")
	if err != nil {
		return guest.Command{}, err
	}
	ignores, _, err := unstructured.NestedBool(object.Object, "spec", "guest", "ignoresACPI")
	if err != nil {
		return guest.Command{}, err
	}
	return guest.Command{Args: []string{controller.GuestCommand, "--name=" + object.GetNamespace() + "/" + object.GetName(),
		"--shutdown-seconds=" + strconv.FormatInt(seconds, 10), "--ignores-acpi=" + strconv.FormatBool(ignores)}}, nil
}

// runGuest is a machine that does nothing until it is asked to shut down.
func runGuest(args []string) error {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	if err := guest.Announce(); err != nil {
		return err
	}
	flags := flag.NewFlagSet(controller.GuestCommand, flag.ContinueOnError)
	flags.String("name", "", "name of the object, for who looks at the list of processes")
	seconds := flags.Int("shutdown-seconds", 0, "how long the guest takes to shut down")
	ignores := flags.Bool("ignores-acpi", false, "the guest does not shut down")
	if err := flags.Parse(args); err != nil {
		return err
	}
	fmt.Println("the guest runs")
	for range signals {
		fmt.Println("the power button was pressed")
		if !*ignores {
			break
		}
	}
	<-time.After(time.Duration(*seconds) * time.Second)
	fmt.Println("the guest has shut down")
	return nil
}
