// Record runs the end-to-end tests of the packages that it is given. With a directory for results it
// adds them to those of their version of Kubernetes, and writes the table of versions into the pages.
//
// It prints what "go test" prints, and fails if a test fails or is skipped. A signal ends the
// tests; the packages that have ended are recorded.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/exeunt-io/exeunt/internal/versions"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := record(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func record(ctx context.Context) error {
	kubernetes := flag.String("kubernetes", "", "version of the API server, such as v1.36.3")
	results := flag.String("results", "", "directory of the results (default: none are kept)")
	flag.Parse()
	if *kubernetes == "" || flag.NArg() == 0 {
		return errors.New("name the version and the packages: record -kubernetes=VERSION [-results=DIRECTORY] PACKAGE")
	}
	run, failure := test(ctx, *kubernetes, flag.Args())
	if len(run.Packages) == 0 {
		return errors.Join(failure, errors.New("no test was run"))
	}
	if *results == "" {
		return errors.Join(failure, run.OK())
	}
	if err := versions.Save(*results, run); err != nil {
		return errors.Join(failure, err)
	}
	all, err := versions.Load(*results)
	if err != nil {
		return errors.Join(failure, err)
	}
	return errors.Join(failure, run.OK(), versions.UpdateFile("docs/versions.md", all))
}

// test runs the tests, two packages at a time. The error says that a test failed.
func test(ctx context.Context, kubernetes string, packages []string) (versions.Result, error) {
	command := exec.CommandContext(ctx, "go", append([]string{"test", "-json", "-p=2", "-count=1", "-timeout=60m"}, packages...)...)
	command.Env = append(os.Environ(), "EXEUNT_KUBE="+kubernetes)
	command.Stderr = os.Stderr
	output, err := command.StdoutPipe()
	if err != nil {
		return versions.Result{}, err
	}
	if err := command.Start(); err != nil {
		return versions.Result{}, fmt.Errorf("start go test: %w", err)
	}
	run, err := versions.Read(kubernetes, output, os.Stdout)
	if err != nil {
		_, _ = io.Copy(io.Discard, output)
	}
	if waited := command.Wait(); waited != nil {
		err = errors.Join(err, fmt.Errorf("go test: %w", waited))
	}
	return run, err
}
