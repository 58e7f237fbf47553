// Compare measures our programs, upstream's and the ceiling (the fewest requests that could do it) by
// turns in the same control plane. It prints tables, and writes all values and plots into a folder.
// See test/bench/plan for the scenarios.
//
//	compare [--full] [--only REGEXP] [--rounds 3] [--out bin/bench]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/test/bench/measure"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	klog.SetLogger(logr.Discard())
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

// run measures and reports.
func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	older, err := read(o.results())
	if err != nil {
		return err
	}
	if o.again {
		fmt.Print(Tables(older))
		return write(o, older)
	}
	all := kept{o: o, older: older}
	err = measureAll(ctx, o, all.add)
	if len(all.result.Turns) > 0 {
		fmt.Print("\n" + Tables(all.result))
	}
	if ctx.Err() != nil {
		return fmt.Errorf("interrupted: all processes were ended; %d scenarios were measured before",
			len(all.result.Scenarios()))
	}
	return errors.Join(err, refusals(all.result), OverLimit(all.result))
}

// kept is what was measured. The folder has it after each scenario, as a run can take hours.
type kept struct {
	o             options
	older, result measure.Result
}

// add takes all turns of a scenario.
func (k *kept) add(turns []measure.Turn) error {
	k.result.Turns = append(k.result.Turns, turns...)
	return write(k.o, k.older.With(k.result))
}

// parse reads the flags.
func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("compare", flag.ContinueOnError)
	flags.BoolVar(&o.choice.Full, "full", false, "measure the scenarios that take long, too")
	flags.StringVar(&o.choice.Only, "only", "", "regular expression for the names of scenarios (default: all)")
	flags.IntVar(&o.choice.Limit, "limit", 0, "largest number of volumes, for a trial (default: none)")
	flags.IntVar(&o.rounds, "rounds", 3, "turns of each side in each scenario")
	flags.StringVar(&o.binaries.Dir, "bin-dir", "bin", "directory of the programs")
	flags.StringVar(&o.out, "out", "bin/bench",
		"folder of plots and of results.json, which has all values; those of the measured scenarios are replaced")
	flags.StringVar(&o.profiles, "profiles", "",
		"directory that gets CPU profiles of the API server and of the programs, in each phase, which cost some CPU time themselves (default: none)")
	flags.BoolVar(&o.again, "again", false,
		"measure nothing: print the tables of the results in the folder, and draw their plots")
	flags.SetOutput(io.Discard)
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		flags.SetOutput(os.Stdout)
		flags.PrintDefaults()
	}
	switch {
	case err != nil:
		return o, err
	case flags.NArg() > 0:
		return o, fmt.Errorf("%q is no flag, see --help", flags.Arg(0))
	case o.rounds < 1:
		return o, errors.New("--rounds must be at least 1")
	}
	return o, nil
}
