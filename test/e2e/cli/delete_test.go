package cli

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/graceful/deadline"
)

const held = "example.com/f"

// spelled returns the sentence for a machine.
func spelled(name, format string, values ...any) string {
	return fmt.Sprintf("machine.example.com %q ", name) + fmt.Sprintf(format, values...)
}

// afterFirst are deletions after that with 300 s. Without a text the deadline stays.
var afterFirst = []struct {
	row, args string
	want      string
	code      int
	changes   bool
}{
	{"#61 later", "--grace-period=600", "", 1, false},
	{"#61 no grace", "", "is already being deleted, its deadline is", 0, false},
	{"#61 earlier", "--grace-period=60", "deleted, its deadline is", 0, true},
	{"#61 later than that", "--grace-period=90", "a deadline can only move earlier", 1, false},
	{"#61 now", "--now", "deleted, its deadline is", 0, true},
	{"#61 force", "--force", "deleted, by force", 0, true},
	{"#61 forced", "--grace-period=5", "is already being deleted by force, which no grace period changes", 1, false},
	{"#61 force again", "--force --grace-period=0", "is already being deleted, by force", 0, false},
}

// #60, #61: one object after the other command, at an API server of upstream.
func TestDeadlineIsInForceAtUpstreamsServer(t *testing.T) {
	m := openMachines(t)
	m.create("a", "", held)
	first, code := m.delete("machine/a", "--grace-period=300")
	object := m.get("a")
	read, window := deadline.Of(object), object.GetAnnotations()[deadline.Annotation]
	written, ok := deadline.Parse(window)
	at := object.GetDeletionTimestamp().Time
	length := written.End.Sub(at) // from the DELETE, whose answer may be late
	if code != 0 || read.Kind() != deadline.Graceful || !ok || written.Start.Sub(at).Abs() > 10*time.Second ||
		length < 300*time.Second || length > 310*time.Second || *object.GetDeletionGracePeriodSeconds() != 0 {
		t.Fatalf("#60: %q, exit code %d, %v: %s", first, code, read.Kind(), window)
	}
	if want := spelled("a", "deleted, its deadline is %s", written.End.UTC().Format(time.RFC3339)); first != want {
		t.Errorf("#60: printed %q, want %q", first, want)
	}
	for _, step := range afterFirst {
		if step.want == "" {
			step.want = "stays " + written.End.UTC().Format(time.RFC3339) + ": a deadline can only move earlier"
		}
		before, last := m.get("a"), m.granted("a")
		got, code := m.delete(append([]string{"mc/a"}, strings.Fields(step.args)...)...)
		after := m.get("a")
		window, _ := deadline.Parse(after.GetAnnotations()[deadline.Annotation])
		if code != step.code || !strings.Contains(got, step.want) || !window.Start.Equal(written.Start) ||
			m.granted("a").After(last) || step.changes == (after.GetResourceVersion() == before.GetResourceVersion()) {
			t.Errorf("%s: %q, exit code %d, window %v after %v", step.row, got, code, window, last)
		}
	}
	if !deadline.Of(m.get("a")).Forced() {
		t.Error("#61: not forced")
	}
	m.letGo("a")
	m.expectGone("a")
}

func TestOnlyForceChangesPlainDeletion(t *testing.T) {
	m := openMachines(t)
	m.create("plain", "", held)
	if got, code := m.delete("machine/plain"); code != 0 || got != spelled("plain", "deleted, without a grace period") {
		t.Errorf("%q, exit code %d", got, code)
	}
	version := m.get("plain").GetResourceVersion()
	if got, code := m.delete("machine/plain", "--grace-period=5"); code != 1 ||
		!strings.HasSuffix(got, "is already being deleted without a grace period, which only --force changes") ||
		m.get("plain").GetResourceVersion() != version {
		t.Errorf("%q, exit code %d", got, code)
	}
	if got, code := m.delete("machine/plain", "--force"); code != 0 || !deadline.Of(m.get("plain")).Forced() {
		t.Errorf("%q, exit code %d: not forced", got, code)
	}
}

// #62: a sentence, exit code 1, and nothing is deleted.
func TestRefusedDeletionDeletesNothing(t *testing.T) {
	m := openMachines(t)
	m.allow("reader", "get", "delete")
	m.allow("writer", "get", "patch")
	m.deny("fixed", admissionv1.Update)
	m.deny("kept", admissionv1.Delete)
	full := "full"
	for _, name := range []string{"a", "fixed", "kept", full} {
		m.create(name, "", held)
	}
	_, err := m.machines.Patch(m.ctx, full, types.MergePatchType, []byte(`{"metadata":{"annotations":{"x":"`+
		strings.Repeat("x", 256<<10-1)+`"}}}`), metav1.PatchOptions{})
	m.must(err, "fill the annotations")
	for _, tc := range []struct {
		row, name, args, want string
	}{
		{"#62 no right to patch", "a", "--as=reader", `cannot patch resource "machines" in API group "example.com" in the namespace "lab"; nothing was deleted`},
		{"#62 no right to delete", "a", "--as=writer", `cannot delete resource "machines" in API group "example.com" in the namespace "lab"; nothing was deleted`},
		{"#62 no right to read", "a", "--as=nobody", `cannot get resource "machines"`},
		{"#62 a policy denies the annotation", "fixed", "", "denied request: not on my watch; nothing was deleted"},
		{"#62 a policy denies the deletion", "kept", "", "denied request: not on my watch; nothing was deleted"},
		{"#62 no room", full, "", "nothing was deleted"},
		{"no such object", "b", "", `there is no machine.example.com "b" in namespace lab`},
	} {
		got, code := m.delete(append([]string{"machine/" + tc.name, "--grace-period=300"}, strings.Fields(tc.args)...)...)
		if code != 1 || !strings.HasPrefix(got, "exeunt: ") || !strings.Contains(got, tc.want) || strings.Contains(got, "\n") {
			t.Errorf("%s: %q, exit code %d, want %q", tc.row, got, code, tc.want)
		}
		if tc.name == "b" {
			continue
		}
		object := m.get(tc.name)
		if window := object.GetAnnotations()[deadline.Annotation]; object.GetDeletionTimestamp() != nil || window != "" {
			t.Errorf("%s: deleted %v, annotation %q", tc.row, object.GetDeletionTimestamp(), window)
		}
	}
}

// #63: the annotation of a command that died has no effect after a minute, and is removed before.
func TestCommandThatDiedLeavesNoDeadline(t *testing.T) {
	m := openMachines(t)
	window := func(age time.Duration) string {
		start := time.Now().Add(-age)
		return deadline.Window{Start: start, End: start.Add(time.Hour)}.String()
	}
	for name, age := range map[string]time.Duration{"old": 2 * time.Minute, "fresh": 0} {
		m.create(name, window(age), held)
		got, code := m.delete("machine/" + name)
		if read := deadline.Of(m.get(name)); code != 0 || read.Kind() != deadline.Unspecified {
			t.Errorf("%s: %q, exit code %d: %v", name, got, code, read.Kind())
		}
	}
	m.create("again", window(0), held)
	if got, code := m.delete("machine/again", "--grace-period=30"); code != 0 ||
		time.Until(m.granted("again")) > time.Minute {
		t.Errorf("%q, exit code %d: deadline %v", got, code, m.granted("again"))
	}
}

func TestOtherObjectsAreLeftToKubectl(t *testing.T) {
	m := openMachines(t)
	m.create("bare", "")
	m.create("b", "", held)
	for _, tc := range []struct {
		args, want string
		code       int
	}{
		{"cm/held mc/b --grace-period=5", `exeunt: configmap "held" is of a built-in kind, not a custom resource: use kubectl delete configmaps held -n `, 1},
		{"machin/b", `exeunt: the API server serves no kind "machin", did you mean machine?`, 1},
		{"mc bare b --grace-period=5", spelled("bare", "deleted at once: it had no finalizer, so no controller waits for a deadline"), 0},
	} {
		if got, code := m.delete(strings.Fields(tc.args)...); code != tc.code || !strings.HasPrefix(got, tc.want) {
			t.Errorf("%s: %q, exit code %d, want %q", tc.args, got, code, tc.want)
		}
	}
	m.expectGone("bare")
}

func TestCommandWaitsUntilObjectIsGone(t *testing.T) {
	m := openMachines(t)
	m.create("a", "", held)
	command := m.command("delete", "-n", m.namespace, "mc/a", "--grace-period=300")
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	m.must(command.Start(), "start exeunt")
	m.await("the machine is being deleted", func(context.Context) bool { return m.get("a").GetDeletionTimestamp() != nil })
	m.letGo("a")
	if err := command.Wait(); err != nil || !strings.HasPrefix(output.String(), `machine.example.com "a" deleted`) {
		t.Errorf("%v, printed %q", err, output.String())
	}
	m.create("b", "", held)
	stdout, stderr, code := m.run("delete", "-n", m.namespace, "mc/b", "--force", "--timeout=100ms")
	if want := "exeunt: wait until machine.example.com \"b\" is gone: given up after 100ms (--timeout)\n"; code != 1 ||
		stdout != "machine.example.com \"b\" deleted, by force\n" || stderr != want {
		t.Errorf("%q, %q, exit code %d, want %q", stdout, stderr, code, want)
	}
}

// #53
func TestRollbackChangesEachObjectInGraceOnce(t *testing.T) {
	m := openMachines(t)
	for name, args := range map[string][]string{"grace": {"--grace-period=300"}, "forced": {"--force"}, "plain": nil} {
		m.create(name, "", held)
		if got, code := m.delete(append([]string{"mc/" + name}, args...)...); code != 0 {
			t.Fatalf("%q, exit code %d", got, code)
		}
	}
	version := func(name string) string { return m.get(name).GetResourceVersion() }
	before, forced, plain, end := version("grace"), version("forced"), version("plain"), m.granted("grace")
	stdout, _, code := m.run("rollback")
	if code != 2 || !strings.Contains(stdout, "9. pending  Rewrite deadlines of custom resources  (--confirm)") ||
		version("grace") != before {
		t.Errorf("exit code %d, printed:\n%s", code, stdout)
	}
	stdout, _, code = m.run("rollback", "--confirm")
	if code != 0 || !strings.Contains(stdout, "rewritten: annotation exeunt.io/deletion-window of Machine lab/grace") ||
		version("grace") == before || !m.granted("grace").Equal(end) || version("forced") != forced ||
		version("plain") != plain {
		t.Errorf("exit code %d, deadline %v, want %v; printed:\n%s", code, m.granted("grace"), end, stdout)
	}
	before = version("grace")
	if stdout, _, code = m.run("rollback", "--confirm", "--deadlines-only"); code != 0 || version("grace") != before {
		t.Errorf("another run: exit code %d, printed:\n%s", code, stdout)
	}
	if got, code := m.delete("mc/grace", "--grace-period=30"); code != 0 || !m.granted("grace").Before(end) {
		t.Errorf("%q, exit code %d: the deadline does not move any more", got, code)
	}
}
