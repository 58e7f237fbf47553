package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"

	"github.com/exeunt-io/exeunt/internal/terminal"
	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/why"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/printer"
	"github.com/exeunt-io/exeunt/pkg/why/reference"
)

// The exit codes of an explanation.
const (
	exitWaiting = 2
	exitStuck   = 3
)

// grace is how long an explanation may take after its timeout, to say what was not seen.
const grace = 2 * time.Second

// explanation is one run of "exeunt why".
type explanation struct {
	*whyFlags
	streams   genericiooptions.IOStreams
	printer   printer.Printer
	config    *rest.Config
	namespace string
	enforced  bool // the user chose the namespace
}

func newExplanation(flags *whyFlags, streams genericiooptions.IOStreams) *explanation {
	return &explanation{whyFlags: flags, streams: streams, printer: printer.Printer{
		Out: streams.Out, Format: flags.format, Color: terminal.SupportsColor(streams.Out),
		Columns: terminal.WidthOf(streams.Out), Compact: flags.watch,
	}}
}

// run explains the objects of the command line and the files.
func (e *explanation) run(ctx context.Context, words []string) error {
	if err := e.connect(); err != nil {
		return err
	}
	texts, err := within(ctx, 0, e.readFiles) // a program that writes slowly is not the API server
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, e.timeout)
	defer cancel()
	explorer, err := e.open()
	if err != nil {
		return err
	}
	if e.all || e.allNamespaces {
		return e.survey(limited, explorer)
	}
	found, err := within(limited, 0, func() (named, error) { return e.resolve(explorer.Reader(), words, texts) })
	switch refs := found.refs; {
	case err != nil:
		return e.sentence(err)
	case len(found.unserved) > 0 && (len(refs) == 0 || e.watch):
		return errors.Join(found.unserved...)
	case e.watch && len(refs) != 1:
		return fmt.Errorf("--watch explains one object, not %d", len(refs))
	case e.watch:
		return e.follow(ctx, refs[0])
	case len(refs) == 1 && len(e.files) == 0:
		return e.one(limited, explorer, refs[0])
	}
	return e.several(limited, explorer, found)
}

// connect reads the kubeconfig.
func (e *explanation) connect() (err error) {
	if e.config, err = restConfigOf(e.whyFlags.config); err != nil {
		return err
	}
	if e.namespace, e.enforced, err = e.whyFlags.config.ToRawKubeConfigLoader().Namespace(); err != nil {
		return fmt.Errorf("load kubeconfig: %w", err)
	}
	return nil
}

// open returns an explorer that has read nothing yet. Requests of discovery take no context
// and are bounded by the timeout of the connection.
func (e *explanation) open() (*why.Explorer, error) {
	config := rest.CopyConfig(e.config)
	if config.Timeout == 0 {
		config.Timeout = e.timeout
	}
	reader, err := cluster.NewReader(config)
	if err != nil {
		return nil, err
	}
	return why.NewExplorer(reader, commandsOf(e.whyFlags.config, e.program), e.probe), nil
}

// namedText is the content of a file, and how errors name the file.
type namedText struct {
	name string
	text []byte
}

// readFiles reads the files and standard input.
func (e *explanation) readFiles() ([]namedText, error) {
	var all []namedText
	for _, name := range e.files {
		file := namedText{name: name}
		var err error
		if name == "-" {
			file.name = "standard input"
			file.text, err = io.ReadAll(e.streams.In)
		} else {
			file.text, err = os.ReadFile(name)
		}
		if err != nil {
			return nil, fmt.Errorf("read file: %w", err)
		}
		all = append(all, file)
	}
	return all, nil
}

// named are the objects that were named.
type named struct {
	refs []cluster.Ref
	// unserved says of which kinds of the files the API server serves none.
	unserved []error
}

// resolve returns the objects of the command line and the files.
func (e *explanation) resolve(reader *cluster.Reader, words []string, texts []namedText) (named, error) {
	resolver := reference.NewResolver(reader, e.namespace, e.enforced)
	refs, err := resolver.Words(words)
	all := named{refs: refs}
	if err != nil {
		return named{}, err
	}
	for _, file := range texts {
		found, err := resolver.Read(bytes.NewReader(file.text))
		if err != nil {
			err = fmt.Errorf("read %s: %w", file.name, err)
			if !errors.As(err, new(*reference.UnservedError)) {
				return named{}, err
			}
			all.unserved = append(all.unserved, err)
		}
		all.refs = append(all.refs, found...)
	}
	return all, nil
}

// one explains one object.
func (e *explanation) one(ctx context.Context, explorer *why.Explorer, ref cluster.Ref) error {
	report, err := within(ctx, grace, func() (blocker.Report, error) { return explorer.Explain(ctx, ref) })
	if err != nil {
		return e.sentence(unreadable(ref, err))
	}
	if report.Verdict == blocker.Gone {
		if err := noNamespace(ctx, explorer.Reader(), ref.Namespace); err != nil {
			return err
		}
	}
	late := e.late(ctx) // before the output, which may wait for a pager
	if err := e.printer.Report(report, explorer.Reader().Now()); err != nil {
		return err
	}
	return outcome(report.Verdict, late)
}

// several explains several objects. Those that cannot be read are named in the error.
func (e *explanation) several(ctx context.Context, explorer *why.Explorer, all named) error {
	answers, err := within(ctx, grace, func() ([]why.Answer, error) { return explorer.Several(ctx, all.refs), nil })
	if err != nil {
		return e.sentence(err)
	}
	var reports []blocker.Report
	errs := all.unserved
	namespaces := map[string]error{} // those of objects that do not exist
	worst := blocker.Gone
	for _, answer := range answers {
		if answer.Err != nil {
			errs = append(errs, e.sentence(unreadable(answer.Ref, answer.Err)))
			continue
		}
		if answer.Report.Verdict == blocker.Gone {
			if err := noNamespace(ctx, explorer.Reader(), answer.Ref.Namespace); err != nil {
				namespaces[answer.Ref.Namespace] = err
				continue
			}
		}
		reports = append(reports, answer.Report)
		worst = max(worst, answer.Report.Verdict)
	}
	errs = append(append(errs, slices.Collect(maps.Values(namespaces))...), e.late(ctx))
	if err := e.printer.Reports(reports, explorer.Reader().Now()); err != nil {
		return err
	}
	return outcome(worst, errors.Join(errs...))
}

// survey explains all that waits.
func (e *explanation) survey(ctx context.Context, explorer *why.Explorer) error {
	scope := why.Scope{OlderThan: e.olderThan}
	if e.enforced && !e.allNamespaces {
		scope.Namespace = e.namespace
	}
	survey, err := within(ctx, grace, func() (why.Survey, error) { return explorer.All(ctx, scope) })
	if err != nil {
		return e.sentence(err)
	}
	if len(survey.Items) == 0 {
		if err := noNamespace(ctx, explorer.Reader(), scope.Namespace); err != nil {
			return err
		}
	}
	late := e.late(ctx)
	if err := e.printer.Survey(survey, explorer.Reader().Now()); err != nil {
		return err
	}
	worst := blocker.Gone
	if len(survey.Incomplete) > 0 { // what was not seen may wait
		worst = blocker.Unknown
		if e.format == printer.Name {
			late = errors.Join(late, errors.New("not everything was read: more objects may wait; -o wide names what could not be read"))
		}
	}
	for _, item := range survey.Items {
		worst = max(worst, item.Verdict)
	}
	return outcome(worst, late)
}

// noNamespace returns an error if there is no such namespace: nothing in it is gone, or waits. The name
// may be mistyped.
func noNamespace(ctx context.Context, reader *cluster.Reader, namespace string) error {
	if namespace == "" || reader.Exists(ctx, corev1.SchemeGroupVersion.WithResource("namespaces"), "",
		namespace) != cluster.Absent {
		return nil
	}
	return fmt.Errorf("there is no namespace %q, and nothing in it", namespace)
}

// late returns the error of an explanation that its timeout has ended.
func (e *explanation) late(ctx context.Context) error {
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return nil
	}
	return fmt.Errorf("the API server %s did not answer all requests within %s (--timeout): what is incomplete was not seen", e.config.Host, e.timeout)
}

// outcome returns the error with the exit code of the verdict, or of err if that is higher.
func outcome(verdict blocker.Verdict, err error) error {
	code := 0
	switch verdict {
	case blocker.Gone, blocker.None:
	case blocker.Waiting, blocker.Unknown:
		code = exitWaiting
	case blocker.Stuck:
		code = exitStuck
	}
	if err != nil {
		code = max(code, exitError)
	}
	if code == 0 {
		return nil
	}
	return terminal.ExitError{Code: code, Err: err}
}

// within returns the result of work, or the error of the context if work goes on for longer
// than extra after its deadline: requests of discovery do not end with the context. After
// Ctrl-C there is no result: what work did not read then would look like a finding.
func within[T any](ctx context.Context, extra time.Duration, work func() (T, error)) (T, error) {
	var none T
	type result struct {
		value T
		err   error
	}
	results := make(chan result, 1)
	go func() {
		value, err := work()
		results <- result{value, err}
	}()
	select {
	case r := <-results:
		if isCanceled(ctx) {
			return none, context.Cause(ctx)
		}
		return r.value, r.err
	case <-ctx.Done():
	}
	if isCanceled(ctx) {
		return none, context.Cause(ctx)
	}
	patience := time.NewTimer(extra)
	defer patience.Stop()
	select {
	case r := <-results:
		return r.value, r.err
	case <-patience.C:
		return none, context.Cause(ctx)
	}
}

func isCanceled(ctx context.Context) bool { return errors.Is(ctx.Err(), context.Canceled) }
