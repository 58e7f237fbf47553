package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"

	"github.com/exeunt-io/exeunt/internal/terminal"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/reference"
	"github.com/exeunt-io/exeunt/pkg/window"
)

const deleteLong = `delete deletes custom resources with a grace period on any cluster, also where the API
server ignores kubectl delete --grace-period for them. Controllers that know graceful
deletion (KEP-5673) end the object until the deadline; others see a plain deletion.

It writes the annotation exeunt.io/deletion-window, then deletes the object: that needs the
rights to get, patch and delete it. The API server may be that of upstream, that of Exeunt, or
both behind one address. To wait until the object is gone (--wait) it watches the object, unless
another one could not be deleted; an object that cannot be watched ends the wait. A deadline can
only move earlier. An object without finalizers is gone at once: no controller waits for a
deadline. The clock of this machine does not matter.

--grace-period and --force mean what they mean to kubectl: 0 without --force is 1 second,
--force alone is 0, a negative grace period is none.

Exit codes: 0 all objects are deleted as requested, 1 error; it says what was deleted.`

const deleteExample = `  # Five minutes to shut down
  %[1]s delete vm/a --grace-period=300

  # Sooner: a deadline can move earlier
  %[1]s delete vm/a --grace-period=60

  # Now
  %[1]s delete vm/a --force

  # Several objects; do not wait until they are gone
  %[1]s delete vm a b -n shop --grace-period=300 --wait=false`

// deleteFlags are the flags of "exeunt delete".
type deleteFlags struct {
	program string // how the user calls exeunt
	config  *genericclioptions.ConfigFlags
	grace   int
	force   bool
	now     bool
	wait    bool
	timeout time.Duration
}

// newDeleteCommand returns "exeunt delete". program is how the user calls the command.
func newDeleteCommand(streams genericiooptions.IOStreams, program string) *cobra.Command {
	flags := deleteFlags{program: program, config: genericclioptions.NewConfigFlags(true)}
	command := &cobra.Command{
		Use:     "delete (KIND/NAME... | KIND NAME...)",
		Short:   "Delete custom resources with a grace period, on any cluster",
		Long:    deleteLong,
		Example: fmt.Sprintf(deleteExample, program),
		RunE: func(command *cobra.Command, words []string) error {
			seconds, err := flags.seconds()
			if err != nil {
				return err
			}
			if len(words) == 0 {
				return fmt.Errorf("which object? give it as KIND/NAME; see %s --help", command.CommandPath())
			}
			return flags.run(command.Context(), streams, words, seconds)
		},
		ValidArgsFunction: (&whyFlags{config: flags.config}).completeObjects,
	}
	addConnection(command.Flags(), flags.config)
	set := command.Flags()
	set.IntVar(&flags.grace, "grace-period", -1,
		"seconds until the deadline; 0 only with --force, negative for none")
	set.BoolVar(&flags.force, "force", false, "end the objects now: grace period 0")
	set.BoolVar(&flags.now, "now", false, "the same as --grace-period=1")
	set.BoolVar(&flags.wait, "wait", true, "wait until the objects are gone")
	set.DurationVar(&flags.timeout, "timeout", 0, "how long to wait until the objects are gone, 0 for no limit")
	registerCompletion(command, flags.config)
	return command
}

// seconds returns the grace period that the DELETE names, nil for none, as kubectl would.
func (f *deleteFlags) seconds() (*int64, error) {
	seconds := int64(f.grace)
	switch {
	case f.timeout < 0:
		return nil, errors.New("--timeout must not be negative")
	case f.now && seconds >= 0:
		return nil, errors.New("--now and --grace-period cannot be specified together")
	case f.now && f.force:
		return nil, errors.New("--now and --force cannot be specified together")
	case f.force && seconds > 0:
		return nil, errors.New("--force and --grace-period greater than 0 cannot be specified together")
	case f.force:
		seconds = 0
	case f.now, seconds == 0: // 0 alone would be force by accident
		seconds = 1
	case seconds < 0:
		return nil, nil
	}
	return &seconds, nil
}

// run deletes the objects, then waits until they are gone. After an error it goes on with the next object, and does not
// wait: the error is printed now, not in an hour.
func (f *deleteFlags) run(ctx context.Context, streams genericiooptions.IOStreams, words []string,
	seconds *int64) error {
	reader, err := f.connect(ctx)
	if err != nil {
		return err
	}
	refs, err := f.resolve(reader, words)
	if err != nil {
		return err
	}
	deleter := window.NewDeleter(reader, seconds)
	if seconds != nil && *seconds > window.MaxSeconds {
		fmt.Fprintf(streams.ErrOut, "exeunt: the grace period is limited to %d seconds\n", window.MaxSeconds)
	}
	var errs []error
	var deleted []window.Result
	for _, ref := range refs {
		result, err := deleter.Delete(ctx, ref)
		if err != nil {
			errs = append(errs, errors.New(oneLine(err)))
		} else if _, err := fmt.Fprintln(streams.Out, terminal.Printable(result.String())); err != nil {
			return err
		} else {
			deleted = append(deleted, result)
		}
		if ctx.Err() != nil { // Ctrl-C: what was deleted is said
			return errors.Join(append(errs, context.Cause(ctx))...)
		}
	}
	if f.wait && len(errs) == 0 {
		return f.await(ctx, deleter, deleted)
	}
	return errors.Join(errs...)
}

// connect returns a Reader of the cluster, whose requests have a limit. The API server answers and knows the user.
func (f *deleteFlags) connect(ctx context.Context) (*cluster.Reader, error) {
	config, err := restConfigOf(f.config)
	if err != nil {
		return nil, err
	}
	if config.Timeout == 0 { // --request-timeout is not set
		config = rest.CopyConfig(config)
		config.Timeout = journalRequestTimeout
	}
	reader, err := cluster.NewReader(config)
	if err != nil {
		return nil, err
	}
	return reader, reach(ctx, reader, config.Host, config.Timeout)
}

// resolve returns the objects that the words name. A built-in kind is an error for all of them.
func (f *deleteFlags) resolve(reader *cluster.Reader, words []string) ([]cluster.Ref, error) {
	namespace, enforced, err := f.config.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, fmt.Errorf("load kubeconfig: %w", err)
	}
	refs, err := reference.NewResolver(reader, namespace, enforced).Words(words)
	if err != nil {
		return nil, err
	}
	for _, ref := range refs {
		if window.IsBuiltIn(ref.Resource.Group) {
			return nil, fmt.Errorf("%s is of a built-in kind, not a custom resource: use %s; nothing was deleted", window.Name(ref),
				commandsOf(f.config, f.program).Kubectl(ref.Namespace, "delete", ref.Resource.Resource, ref.Name))
		}
	}
	return refs, nil
}

// errEnded is why the wait for an object ends that did not fail itself.
var errEnded = errors.New("the wait for another object failed")

// mostWaits is how many objects are awaited at once.
const mostWaits = 100

// await waits until all objects are gone. What fails for one of them ends the wait: it is printed now, not when the
// others are gone.
func (f *deleteFlags) await(ctx context.Context, deleter *window.Deleter, deleted []window.Result) error {
	waiting, end := context.WithCancelCause(ctx)
	defer end(nil)
	if f.timeout > 0 {
		var cancel context.CancelFunc
		waiting, cancel = context.WithTimeoutCause(waiting, f.timeout,
			fmt.Errorf("given up after %s (--timeout)", f.timeout))
		defer cancel()
	}
	errs, slots := make([]error, len(deleted)), make(chan struct{}, mostWaits)
	var waits sync.WaitGroup
	for i, result := range deleted {
		if result.Gone {
			continue
		}
		slots <- struct{}{}
		waits.Go(func() {
			defer func() { <-slots }()
			if err := deleter.AwaitGone(waiting, result); err != nil && !errors.Is(err, errEnded) {
				errs[i] = fmt.Errorf("wait until %s is gone: %w", window.Name(result.Ref), err)
				end(errEnded)
			}
		})
	}
	waits.Wait()
	err, signaled := errors.Join(errs...), terminal.SignalError{}
	if err != nil && errors.As(context.Cause(ctx), &signaled) {
		return fmt.Errorf("%w: what is deleted ends without this command", signaled)
	}
	return err
}
