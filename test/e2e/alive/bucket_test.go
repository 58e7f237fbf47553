package alive

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/exeunt-io/exeunt/examples"
	"github.com/exeunt-io/exeunt/examples/bucket-operator/operator"
	"github.com/exeunt-io/exeunt/pkg/alive"
	"github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/pkg/teardown/runner"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// buckets is a running bucket-operator.
type buckets struct {
	*rig
	directory string
	process   *sandbox.Process
}

func startBuckets(t *testing.T) *buckets {
	t.Helper()
	r := startGuarded(t)
	r.must(sandbox.Apply(r.ctx, r.plane.RESTConfig(), examples.Buckets), "apply manifests")
	r.until("Buckets are served", func() bool {
		_, err := r.dynamic(admin).Resource(operator.Resource).List(r.ctx, metav1.ListOptions{})
		return err == nil
	})
	b := &buckets{rig: r, directory: t.TempDir()}
	b.begin()
	t.Cleanup(func() {
		if err := b.process.Kill(); err != nil {
			t.Errorf("stop bucket-operator: %v", err)
		}
	})
	return b
}

// begin starts the program.
func (b *buckets) begin() {
	b.Helper()
	path, err := harness.Binaries().Path(operator.Program)
	b.must(err, "find bucket-operator")
	kubeconfig, err := b.plane.Kubeconfig(b.ctx, sandbox.ServiceAccount(operator.Program, operator.Program))
	b.must(err, "write kubeconfig")
	b.process, err = sandbox.Start(b.ctx, sandbox.Program{Name: operator.Program, Path: path,
		Args:    []string{"--kubeconfig=" + kubeconfig, "--directory=" + b.directory},
		LogFile: filepath.Join(b.TempDir(), "log"), ReadyLine: operator.Program + ": ready"})
	b.must(err, "start bucket-operator")
}

// make creates Buckets and returns once they have directories.
func (b *buckets) make(count int) {
	b.Helper()
	for range count {
		object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.exeunt.io/v1", "kind": "Bucket",
			"metadata": map[string]any{"generateName": "b-"}}}
		_, err := b.dynamic(admin).Resource(operator.Resource).Namespace("default").Create(b.ctx, object, metav1.CreateOptions{})
		b.must(err, "create Bucket")
	}
	b.until("the buckets are made", func() bool { return b.made() == b.all() })
}

// all counts the Buckets, made those with a directory in their status.
func (b *buckets) all() int { return len(b.list()) }

func (b *buckets) made() (count int) {
	b.Helper()
	for _, bucket := range b.list() {
		if directory, _, _ := unstructured.NestedString(bucket.Object, "status", "directory"); directory != "" {
			count++
		}
	}
	return count
}

func (b *buckets) list() []unstructured.Unstructured {
	b.Helper()
	list, err := b.dynamic(admin).Resource(operator.Resource).List(b.ctx, metav1.ListOptions{})
	b.must(err, "list Buckets")
	return list.Items
}

// count counts the directories.
func (b *buckets) count() int {
	b.Helper()
	found, err := filepath.Glob(filepath.Join(b.directory, "*-*-*-*-*"))
	b.must(err, "count directories")
	return len(found)
}

func (b *buckets) registered() bool {
	b.Helper()
	for _, one := range alive.ParticipantsOf(b.get()) {
		if one == operator.Participant {
			return true
		}
	}
	return false
}

// seen returns once the operator has handled all events so far: a Bucket that is made and deleted tells.
func (b *buckets) seen() {
	b.Helper()
	before := b.all()
	b.make(1)
	last := b.list()[0]
	b.must(b.dynamic(admin).Resource(operator.Resource).Namespace("default").Delete(b.ctx, last.GetName(), metav1.DeleteOptions{}),
		"delete Bucket")
	b.until("the bucket is gone", func() bool { return b.all() == before && b.count() == before })
}

func TestParticipantCleansUpOnceStarted(t *testing.T) {
	b := startBuckets(t)
	b.until("the operator is registered", b.registered)
	b.make(5)
	b.must(os.WriteFile(filepath.Join(b.directory, "notes"), []byte("of others"), 0o600), "write a file")
	b.must(b.patch(admin, map[string]any{"spec": b.permission()}), "permit")
	b.must(b.alives(admin).Delete(b.ctx, alive.Name, metav1.DeleteOptions{}), "delete Alive")
	b.seen()
	if b.count() != 5 || !b.registered() {
		t.Fatalf("a bare deletionTimestamp: %d buckets, registered %v", b.count(), b.registered())
	}
	b.must(b.patch(admin, condition(alive.ConditionStarted), "status"), "start")
	b.until("the operator is done", func() bool { return !b.registered() })
	if b.count() != 0 || b.get().Finalizers[0] != alive.Finalizer {
		t.Errorf("%d buckets are left, finalizers %v", b.count(), b.get().Finalizers)
	}
	if _, err := os.Stat(filepath.Join(b.directory, "notes")); err != nil {
		t.Errorf("what is not a bucket is removed: %v", err)
	}
	b.must(b.process.Kill(), "kill bucket-operator")
	b.begin()
	late := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.exeunt.io/v1", "kind": "Bucket",
		"metadata": map[string]any{"name": "late"}}}
	_, err := b.dynamic(admin).Resource(operator.Resource).Namespace("default").Create(b.ctx, late, metav1.CreateOptions{})
	b.must(err, "create Bucket")
	b.in(protected) // a new Alive: the operator registers, and makes what waited
	b.until("the operator is registered again", b.registered)
	b.until("the late bucket is made", func() bool { return b.count() == 1 && b.made() == b.all() })
}

// Everything but the end goes on while another participant is stuck, and the end comes once that one is done.
func TestTeardownAwaitsItsParticipants(t *testing.T) { // 55
	b := startBuckets(t)
	b.until("the operator is registered", b.registered)
	b.make(3)
	type end struct {
		outcome *runner.Outcome
		err     error
	}
	ended := make(chan end, 1)
	go func() {
		outcome, err := b.runner().Teardown(b.ctx, runner.Word{Timeout: time.Hour})
		ended <- end{outcome, err}
	}()
	b.until("the operator is done", func() bool { return !b.registered() })
	if b.count() != 0 {
		t.Errorf("%d buckets are left", b.count())
	}
	b.until("the other participant is named", func() bool {
		return slices.ContainsFunc(b.get().Status.Remaining, func(r alive.Remaining) bool { return r.Finalizer == others })
	})
	if one := b.get(); one.Status.Phase != alive.TearingDown || !slices.Contains(one.Finalizers, alive.Finalizer) {
		t.Errorf("phase %s, finalizers %v", one.Status.Phase, one.Finalizers)
	}
	b.must(alive.Done(b.ctx, b.dynamic(admin), others), "finish the other participant")
	select {
	case <-b.ctx.Done():
		t.Fatal("the teardown does not end")
	case end := <-ended:
		if end.err != nil || end.outcome.Phase != teardown.Complete {
			t.Fatalf("the teardown ends with %+v, %v", end.outcome, end.err)
		}
	}
	if b.get() != nil {
		t.Error("Alive is left")
	}
}

// runner returns a runner as the command starts it, with shorter waits.
func (b *buckets) runner() *runner.Runner {
	b.Helper()
	clients, err := runner.Connect(b.plane.RESTConfig(), nil)
	b.must(err, "connect")
	waits := runner.DefaultWaits()
	waits.Quiet, waits.Status, waits.Explain, waits.Check = time.Second, time.Second, time.Second, time.Second
	return runner.New(runner.Config{Clients: clients, Waits: waits, Cluster: b.id, Agent: "exeunt-teardown", Command: true,
		Check:  func(context.Context, *alive.Alive) ([]teardown.Problem, error) { return nil, nil },
		Follow: func(runner.Progress) {}})
}

// Without any of the permissions the operator removes nothing.
func TestParticipantKeepsBucketsWithoutPermission(t *testing.T) {
	for name, spec := range map[string]map[string]any{
		"protected": {"protected": true},
		"expired":   {"confirmedAt": "2026-03-01T12:00:00Z"},
		"in future": {"confirmedAt": time.Now().Add(time.Hour).UTC().Format(time.RFC3339)},
	} {
		t.Run(name, func(t *testing.T) {
			b := startBuckets(t)
			b.until("the operator is registered", b.registered)
			b.make(2)
			b.must(b.patch(admin, map[string]any{"spec": b.permission()}), "permit")
			b.must(b.alives(admin).Delete(b.ctx, alive.Name, metav1.DeleteOptions{}), "delete Alive")
			b.must(b.patch(admin, map[string]any{"spec": spec}), "take the permission back")
			if name == "protected" {
				b.unbind("exeunt-alive") // which would refuse Started
			}
			b.until("Started is written", func() bool { return b.patch(admin, condition(alive.ConditionStarted), "status") == nil })
			b.seen()
			if b.count() != 2 || !b.registered() {
				t.Errorf("%d buckets, registered %v", b.count(), b.registered())
			}
		})
	}
}
