// The program instances-command turns machines off for node-terminator. It serves the socket of
// pkg/nodeterminator/instances, and runs a command for each call.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/exeunt-io/exeunt/pkg/nodeterminator/instances"
)

const program = "instances-command"

// requestTimeout is how long a client may take to send a request.
const requestTimeout = 10 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	logger := log.New(os.Stderr, program+": ", log.LstdFlags|log.Lmsgprefix)
	if err := run(ctx, os.Args[1:], os.Stdout, logger); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", program, err)
		os.Exit(1)
	}
}

// run serves the socket until the context ends.
func run(ctx context.Context, args []string, out io.Writer, logger *log.Logger) error {
	socket, provider, err := parse(args, out)
	if provider == nil || err != nil {
		return err
	}
	provider.logger = logger
	listener, err := instances.Listen(socket)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s: ready\n", program)
	return serve(ctx, listener, provider)
}

// serve answers calls until the context ends, with which all commands end.
func serve(ctx context.Context, listener net.Listener, provider *commands) error {
	server := &http.Server{
		Handler:           instances.Handler(provider),
		ReadHeaderTimeout: requestTimeout,
		ReadTimeout:       requestTimeout,
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	stopped := make(chan error, 1)
	end := context.AfterFunc(ctx, func() { stopped <- server.Shutdown(context.WithoutCancel(ctx)) })
	defer end()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-stopped
}

// parse returns the socket and the commands, or no commands if only help was wanted.
func parse(args []string, out io.Writer) (string, *commands, error) {
	flags := flag.NewFlagSet(program, flag.ContinueOnError)
	flags.SetOutput(io.Discard) // an error is one sentence
	socket := flags.String("socket", "", "path of the socket that node-terminator has as --instances-socket")
	get := flags.String("get", "", "command that prints the state of a machine")
	stop := flags.String("stop", "", "command that ends a machine and keeps its disks; without it no machine is stopped")
	remove := flags.String("delete", "", "command that removes a machine; without it no machine is removed")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintf(out, "%s runs a command for each call of node-terminator. Words of a command end at spaces.\n\n", program)
		flags.SetOutput(out)
		flags.PrintDefaults()
		return "", nil, nil
	case err != nil:
		return "", nil, fmt.Errorf("%w, see --help", err)
	case flags.NArg() > 0:
		return "", nil, fmt.Errorf("unknown argument %q, see --help", flags.Arg(0))
	case *socket == "" || *get == "":
		return "", nil, errors.New("--socket and --get are required, see --help")
	}
	return *socket, &commands{get: strings.Fields(*get), stop: strings.Fields(*stop), remove: strings.Fields(*remove)}, nil
}
