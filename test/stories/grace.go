package stories

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/exeunt-io/exeunt/test/demo"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// The guests of the story: how many there are, how many seconds they need, how many their controller gives them by
// default, and how many the user names.
const (
	guests          = 20
	shutdownSeconds = 3
	defaultSeconds  = 1
	graceSeconds    = 10
)

// checkGrace returns an error if a program of the story is missing.
func checkGrace(binaries sandbox.Binaries) error {
	_, err := demo.ExamplePrograms(binaries, sandbox.VirtualMachine)
	return err
}

// runGraces runs the story with one pair after the other.
func (r *runner) runGraces(ctx context.Context, story Story) (results []Result, err error) {
	for _, pair := range r.Pairs {
		result, err := r.runGraceOf(ctx, story, pair)
		if err != nil {
			return nil, err
		}
		results = append(results, result)
	}
	return results, nil
}

// runGraceOf runs the story with an API server of the pair: ours with graceful deletion, upstream's that of the sandbox.
func (r *runner) runGraceOf(ctx context.Context, story Story, pair demo.Pair) (result Result, err error) {
	result = Result{Story: story.Name, Pair: pair, NoVolumes: true}
	program, err := demo.ExamplePrograms(r.Binaries, sandbox.VirtualMachine)
	if err != nil {
		return result, err
	}
	if pair == demo.Upstream {
		program = ""
	}
	cluster, err := demo.StartCluster(ctx, demo.ClusterConfig{Binaries: r.Binaries, Keep: r.Keep, Progress: r.Progress,
		Died: r.fail, KubeAPIServer: program, Examples: true})
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, cluster.StopExamples()) }()
	if err := cluster.StartExamples(ctx, sandbox.VirtualMachine); err != nil {
		return result, err
	}
	begun := time.Now()
	session := &session{
		cluster: cluster, client: cluster.Client(), pair: pair, namespace: metav1.NamespaceDefault,
		say: func(what string) { r.Printer.Step(Step{story.Name, pair, time.Since(begun).Seconds(), what}) },
	}
	limited, cancel := context.WithTimeoutCause(ctx, storyLimit, fmt.Errorf("not within %s", storyLimit))
	defer cancel()
	if result.Measures, err = story.run(limited, session); err != nil && ctx.Err() == nil && limited.Err() != nil {
		result.Unfinished, err = err.Error(), nil
	}
	if err != nil {
		return result, err
	}
	return result, r.Printer.End(result)
}

// runGrace deletes guests that need longer than the default of their controller, and less than the user gives them.
func runGrace(ctx context.Context, s *session) ([]Measure, error) {
	client, err := s.cluster.Dynamic()
	if err != nil {
		return nil, err
	}
	machines := client.Resource(demo.VirtualMachines).Namespace(s.namespace)
	err = inOrder(
		func() error { return s.createGuests(ctx, machines) },
		func() error {
			return s.await(ctx, "the guests run",
				func(ctx context.Context) (bool, error) { return s.hasEvents(ctx, "Started") })
		},
		func() error { return s.deleteGuests(ctx, machines) },
		func() error {
			return s.await(ctx, "the guests are off",
				func(ctx context.Context) (bool, error) { return s.hasEvents(ctx, "PoweredOff") })
		})
	if err != nil {
		return nil, err
	}
	clean, err := s.countEvents(ctx, "PoweredOff", "clean")
	return []Measure{{Name: "guests that shut down cleanly", Value: fmt.Sprint(clean), Promised: fmt.Sprint(guests)}}, err
}

func (s *session) createGuests(ctx context.Context, machines dynamic.ResourceInterface) error {
	s.say(fmt.Sprintf("kubectl create -f guests.yaml  # %d, terminationGracePeriodSeconds: %d, shutdownSeconds: %d", guests,
		defaultSeconds, shutdownSeconds))
	return s.each(guests, func(i int) error {
		guest := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": demo.VirtualMachines.GroupVersion().String(), "kind": "VirtualMachine",
			"metadata": map[string]any{"name": fmt.Sprintf("guest-%d", i)},
			"spec": map[string]any{"terminationGracePeriodSeconds": int64(defaultSeconds),
				"guest": map[string]any{"shutdownSeconds": int64(shutdownSeconds)}},
		}}
		if _, err := machines.Create(ctx, guest, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create guest: %w", err)
		}
		return nil
	})
}

func (s *session) deleteGuests(ctx context.Context, machines dynamic.ResourceInterface) error {
	s.say(fmt.Sprintf("kubectl delete vm --all --grace-period=%d", graceSeconds))
	seconds := int64(graceSeconds)
	return s.each(guests, func(i int) error {
		err := machines.Delete(ctx, fmt.Sprintf("guest-%d", i), metav1.DeleteOptions{GracePeriodSeconds: &seconds})
		return ignoreGone(err, "delete guest")
	})
}

// hasEvents reports whether there is an event for each guest.
func (s *session) hasEvents(ctx context.Context, reason string) (bool, error) {
	count, err := s.countEvents(ctx, reason, "")
	return count == guests, err
}

// countEvents returns the number of guests with an event whose message has the prefix.
func (s *session) countEvents(ctx context.Context, reason, prefix string) (int, error) {
	events, err := s.client.CoreV1().Events(s.namespace).List(ctx, metav1.ListOptions{FieldSelector: "reason=" + reason})
	if err != nil {
		return 0, fmt.Errorf("list events: %w", err)
	}
	found := map[string]bool{}
	for _, event := range events.Items {
		if strings.HasPrefix(event.Message, prefix) {
			found[event.InvolvedObject.Name] = true
		}
	}
	return len(found), nil
}
