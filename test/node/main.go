// Node runs kubelet and containerd on this machine for tests, without a Docker engine:
//
//	node start   run a node until SIGTERM; needs root
//	node check   print why no node can run on this machine; nothing if one can; both exit with 0
//
// The same program is the image of the test's pods:
//
//	node pause           the container of a pod sandbox; also without a command
//	node driver          a CSI driver whose volumes are directories
//	node use FILE TEXT   write a file, and check at SIGTERM that its content is the same
//	node record FILE     write the time each 100 ms, and at SIGTERM
//	node note FILE WORD  write the time and a word
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/exeunt-io/exeunt/test/node/internal/driver"
	"github.com/exeunt-io/exeunt/test/node/internal/launcher"
	"github.com/exeunt-io/exeunt/test/node/internal/record"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "node:", err)
		os.Exit(1)
	}
}

// run carries out a command.
func run(ctx context.Context, args []string) error {
	commands := map[string]func(context.Context, []string) error{
		"start":  start,
		"check":  check,
		"driver": serveDriver,
		"use":    use,
		"record": keepRecord,
		"note":   note,
		// start runs it as the first process of the node's namespaces, with its configuration as input.
		launcher.InitCommand: func(context.Context, []string) error { return launcher.Init(os.Stdin) },
		"pause": func(ctx context.Context, _ []string) error {
			<-ctx.Done()
			return nil
		},
	}
	if len(args) == 0 { // containerd starts pod sandboxes with the command of their image, which is this program alone
		args = []string{"pause"}
	}
	if commands[args[0]] == nil {
		return fmt.Errorf("unknown command %q, want start, check, pause, driver, use, record or note", args[0])
	}
	return commands[args[0]](ctx, args[1:])
}

// start runs a node.
func start(ctx context.Context, args []string) error {
	var config launcher.Config
	var images string
	flags := flag.NewFlagSet("node start", flag.ContinueOnError)
	flags.StringVar(&config.Name, "name", "node-1", "name of the node")
	flags.StringVar(&config.Dir, "dir", "", "directory for data and logs")
	flags.StringVar(&config.Programs, "programs", "", "directory of kubelet, containerd, runc and network plugins")
	flags.StringVar(&config.Kubeconfig, "kubeconfig", "", "kubeconfig of system:node:NAME")
	flags.StringVar(&config.Server, "server", "", "loopback address of the API server, HOST:PORT")
	flags.StringVar(&images, "images", "", "archives of images, separated by commas")
	flags.StringVar(&config.Pause, "pause", "", "image of pod sandboxes")
	flags.StringVar(&config.ProviderID, "provider-id", "", "providerID of the Node")
	flags.IntVar(&config.LeaseSeconds, "lease-seconds", 40, "duration of the Lease of the node")
	if err := flags.Parse(args); err != nil {
		return err
	}
	for _, path := range []*string{&config.Dir, &config.Programs, &config.Kubeconfig} {
		absolute, err := filepath.Abs(*path)
		if err != nil || *path == "" {
			return errors.Join(errors.New("--dir, --programs and --kubeconfig are required"), err)
		}
		*path = absolute
	}
	if images != "" {
		config.Images = strings.Split(images, ",")
	}
	return launcher.Start(ctx, config)
}

// check prints why no node can run on this machine. That is a result, not an error.
func check(ctx context.Context, _ []string) (err error) {
	dir, err := os.MkdirTemp("", "node-")
	if err != nil {
		return fmt.Errorf("create directory of a node: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if reason := launcher.Try(ctx, dir); reason != nil {
		fmt.Println(strings.TrimPrefix(reason.Error(), "node: "))
	}
	return nil
}

// serveDriver runs the CSI driver.
func serveDriver(ctx context.Context, args []string) error {
	var config driver.Config
	flags := flag.NewFlagSet("node driver", flag.ContinueOnError)
	flags.StringVar(&config.Node, "node", "", "name of the node")
	flags.StringVar(&config.Dir, "dir", "", "data directory")
	flags.StringVar(&config.Socket, "socket", "", "socket for provisioner and kubelet")
	flags.StringVar(&config.Registration, "registration", "", "directory in which kubelet looks for drivers")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return driver.Serve(ctx, config)
}

// use writes text to a file, waits for SIGTERM, and returns an error if the file has
// another content then.
func use(ctx context.Context, args []string) error {
	if len(args) != 2 {
		return errors.New("use: name the file and its text")
	}
	file, text := args[0], args[1]
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	<-ctx.Done()
	content, err := os.ReadFile(file)
	if err != nil || string(content) != text {
		return errors.Join(fmt.Errorf("lost: the file has %q, not %q", content, text), err)
	}
	fmt.Println("kept:", text)
	return nil
}

// keepRecord writes the time until it ends after SIGTERM.
func keepRecord(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("node record", flag.ContinueOnError)
	after := flags.Duration("end-after", 0, "time between SIGTERM and the end; a negative time: SIGTERM is ignored")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return errors.New("record: name the file")
	}
	return record.Run(ctx, flags.Arg(0), *after)
}

// note writes the time and a word.
func note(_ context.Context, args []string) error {
	if len(args) != 2 {
		return errors.New("note: name the file and a word")
	}
	return record.Note(args[0], args[1])
}
