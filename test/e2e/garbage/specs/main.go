// Specs runs upstream's end-to-end specs of garbage collection, unchanged, against a cluster
// without a kubelet: etcd, kube-apiserver, kube-controller-manager and a garbage collector.
// See docs/garbage-collector.md.
//
//	specs --side ours|stock|switching [--bin-dir bin]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/test/sandbox"
)

// The sides.
const (
	// ours is garbage-collector, beside kube-controller-manager without its own collector.
	ours = "ours"
	// stock is kube-controller-manager with its collector.
	stock = "stock"
	// switching goes from stock to ours and back until the specs end.
	switching = "switching"
)

// config has the flags.
type config struct {
	side     string
	binaries sandbox.Binaries
	dir      string
	focus    string
	// processes is how many specs run at once. Upstream's serial specs run alone.
	processes int
	// period is how long each side works before the next switch.
	period time.Duration
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	klog.SetLogger(logr.Discard())
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "specs:", err)
		stop()
		os.Exit(1)
	}
}

// run runs the specs and prints the last line.
func run(ctx context.Context, args []string) (err error) {
	c, err := parse(args)
	if err != nil {
		return err
	}
	cluster, err := startCluster(ctx, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.stop()) }()
	fmt.Printf("running upstream's specs with %s; logs are in %s\n", c.side, c.dir)
	began := time.Now()
	outcome, err := cluster.runSpecs(ctx)
	if err != nil {
		return err
	}
	fmt.Print(outcome)
	fmt.Printf("e2e-garbage-specs: %s, %s in %s, %d switches\n", c.side, outcome.summary(),
		time.Since(began).Round(time.Second), cluster.switches)
	return outcome.err()
}

// parse reads the flags.
func parse(args []string) (config, error) {
	var c config
	flags := flag.NewFlagSet("specs", flag.ContinueOnError)
	flags.StringVar(&c.side, "side", ours, "ours, stock or switching: which garbage collector works")
	flags.StringVar(&c.binaries.Dir, "bin-dir", "bin", "directory of the programs")
	flags.StringVar(&c.dir, "dir", "", "directory of data and logs (default: a temporary one)")
	flags.StringVar(&c.focus, "focus", "Garbage collector", "regular expression that selects specs")
	flags.IntVar(&c.processes, "processes", 4, "how many specs run at once")
	flags.DurationVar(&c.period, "period", 20*time.Second,
		"with --side switching: how long each side works before the next switch")
	if err := flags.Parse(args); err != nil {
		return c, err
	}
	switch {
	case flags.NArg() > 0:
		return c, fmt.Errorf("%q is no flag, see --help", flags.Arg(0))
	case !slices.Contains([]string{ours, stock, switching}, c.side):
		return c, fmt.Errorf("--side %s: it must be ours, stock or switching", c.side)
	case c.processes < 1 || c.period <= 0:
		return c, errors.New("--processes and --period must be greater than 0")
	}
	return c, c.makeDirectory()
}

// makeDirectory makes the directory of data and logs.
func (c *config) makeDirectory() (err error) {
	if c.dir == "" {
		c.dir, err = os.MkdirTemp("", "exeunt-specs-")
	} else if c.dir, err = filepath.Abs(c.dir); err == nil {
		err = os.MkdirAll(c.dir, 0o700)
	}
	if err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	return nil
}
