package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	klog.SetLogger(logr.Discard()) // client-go logs each request that the API server's end cuts
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

// run runs the soak and prints the last line.
func run(ctx context.Context, args []string) error {
	config, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	fmt.Printf("seed %d: make soak SEED=%[1]d repeats the plan\n", config.Seed)
	result, err := Run(ctx, config)
	if ctx.Err() != nil {
		return errors.New("interrupted: all processes were ended, there is no result")
	}
	if err != nil {
		return err
	}
	failure := result.Err()
	if failure != nil {
		fmt.Println(failure)
	}
	fmt.Println(result.LastLine())
	if failure != nil {
		os.Exit(1)
	}
	return nil
}

// parse reads the flags.
func parse(args []string) (Config, error) {
	config := Config{Out: os.Stdout}
	flags := flag.NewFlagSet("soak", flag.ContinueOnError)
	seed := flags.String("seed", "", "whole number that decides plan and choices (default: a random one)")
	flags.DurationVar(&config.Duration, "duration", 5*time.Minute, "how long there are faults")
	side := flags.String("side", "ours", "ours or upstream: whose programs run")
	flags.StringVar(&config.Binaries.Dir, "bin-dir", "bin", "directory of the programs")
	flags.SetOutput(io.Discard)
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		flags.SetOutput(os.Stdout)
		flags.PrintDefaults()
	}
	if err != nil {
		return config, err
	}
	switch {
	case flags.NArg() > 0:
		return config, fmt.Errorf("%q is no flag, see --help", flags.Arg(0))
	case *side != "ours" && *side != "upstream":
		return config, fmt.Errorf("--side %s: it must be ours or upstream", *side)
	case config.Duration < time.Second:
		return config, errors.New("--duration must be at least 1s")
	}
	config.Upstream = *side == "upstream"
	config.Seed, err = parseSeed(*seed)
	return config, err
}

// parseSeed returns the seed, a random one for an empty text.
func parseSeed(text string) (uint64, error) {
	if text == "" {
		return uint64(rand.Uint32()), nil
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("--seed %s must be a whole number below 2^64", text)
	}
	return seed, nil
}
