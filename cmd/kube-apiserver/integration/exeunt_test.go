package integration

import (
	"errors"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/exeunt-io/exeunt/pkg/graceful/deadline"
)

// exeunt runs the command line at an API server, and returns what it prints and its exit code.
func exeunt(t *testing.T, server string, args ...string) (string, int) {
	t.Helper()
	kubeconfig := filepath.Join(shared.folder, server, "admin.kubeconfig")
	command := exec.CommandContext(t.Context(), filepath.Join(binaries(), "exeunt"),
		append(args, "--kubeconfig="+kubeconfig)...)
	output, err := command.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("run exeunt, which make programs builds: %v", err)
	}
	return strings.TrimSpace(string(output)), command.ProcessState.ExitCode()
}

// seen wants that an object is deleted in the same way at each API server.
func (k kind) seen(name string, want deadline.Kind, others ...kind) time.Time {
	k.t.Helper()
	found := deletionOf(k.get(name).body)
	for _, other := range append(others, k) {
		if at := deletionOf(other.get(name).body); at.kind != want || !at.end.Equal(found.end) {
			k.t.Errorf("%s: %+v, want %v until %v", name, at, want, found.end)
		}
	}
	return found.end
}

// #60 to #63: the command line at our API server and at a stock one, and what a controller reads at each.
func TestCommandGivesOneDeadlineAtAllServers(t *testing.T) {
	k := newKind(t, ours(t), "command.example.com")
	stock := k.at(mustServe(t, shared.stock)).await()
	for _, server := range []string{"ours", "stock"} {
		t.Run(server, func(t *testing.T) {
			k, stock := k.in(t), stock.in(t)
			object := "machines." + k.group + "/" + server
			run := func(code int, words string, args ...string) {
				t.Helper()
				got, exit := exeunt(t, server, append([]string{"delete", object, "--wait=false"}, args...)...)
				if exit != code || !strings.Contains(got, words) {
					t.Errorf("delete %v: %q, exit code %d, want %q", args, got, exit, words)
				}
			}
			k.create(server, finalizer)
			run(0, "deleted, its deadline is", "--grace-period=300")
			first := k.seen(server, deadline.Graceful, stock)
			run(0, "deleted, its deadline is", "--grace-period=60")
			second := k.seen(server, deadline.Graceful, stock)
			if !second.Before(first) {
				t.Errorf("the deadline moves from %v to %v", first, second)
			}
			run(1, "a deadline can only move earlier", "--grace-period=90")
			run(0, "is already being deleted, its deadline is")
			if end := k.seen(server, deadline.Graceful, stock); !end.Equal(second) {
				t.Errorf("the deadline moves from %v to %v", second, end)
			}
			run(0, "deleted, by force", "--force")
			k.seen(server, deadline.Forced, stock)
			stock.patch(server, withoutFinalizers)
			k.gone(server)

			k.create(server, finalizer)
			run(0, "deleted, without a grace period")
			k.seen(server, deadline.Unspecified, stock)
			run(1, "which only --force changes", "--grace-period=5")
			run(0, "deleted, by force", "--force")
			k.seen(server, deadline.Forced, stock)
			k.patch(server, withoutFinalizers)
			k.gone(server)
		})
	}
}

// #17, #57: a stock API server would end the grace period of another program, and one that begins ahead of its clock.
func TestCommandEndsNoGraceThatStockWouldEnd(t *testing.T) {
	k := newKind(t, ours(t), "exposed.example.com")
	stock := k.at(mustServe(t, shared.stock)).await()
	for name, ahead := range map[string]time.Duration{"in-etcd": 0, "ahead": 2 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			k, stock := k.in(t), stock.in(t)
			k.create(name, finalizer)
			k.graceful(name, 600)
			requested := time.Now().Truncate(time.Second).Add(ahead)
			end := requested.Add(10 * time.Minute)
			k.rewrite(name, func(object *unstructured.Unstructured) {
				if ahead == 0 {
					setDeletion(object, end, 600, "")
				} else {
					setDeletion(object, requested, 0, deadline.Window{Start: requested, End: end}.String())
				}
			})
			_, revision := k.stored(name)
			run := func(grace string) (string, int) {
				return exeunt(t, "stock", "delete", "machines."+k.group+"/"+name, grace, "--wait=false")
			}
			if got, code := run("--grace-period=60"); code != 1 || !strings.Contains(got, "would end the grace period at once") {
				t.Errorf("%q, exit code %d", got, code)
			}
			k.unchanged(name, revision)
			if got := k.seen(name, deadline.Graceful, stock); !got.Equal(end) {
				t.Errorf("the deadline moves from %v to %v", end, got)
			}
			if got, code := run("--force"); code != 0 || !strings.Contains(got, "deleted, by force") {
				t.Errorf("%q, exit code %d", got, code)
			}
			k.seen(name, deadline.Forced, stock)
		})
	}
}

// With the gate off our API server names its own version, and ignores grace periods.
func TestCommandGivesDeadlineWithGateOff(t *testing.T) {
	k := newKind(t, ours(t), "off.example.com")
	off := k.at(mustServe(t, shared.gateOff)).await()
	off.create("a", finalizer)
	for _, args := range []string{"--grace-period=300", "--grace-period=60"} {
		got, code := exeunt(t, "gate-off", "delete", "machines."+k.group+"/a", args, "--wait=false")
		if code != 0 || !strings.Contains(got, "deleted, its deadline is") {
			t.Errorf("%s: %q, exit code %d", args, got, code)
		}
		k.seen("a", deadline.Graceful, off)
	}
}

// #53: a controller has the object in its informer as our API server served it, and resumes its watch at a stock one,
// or at ours with the gate off.
func TestRollbackEndsRefusalsOfInformers(t *testing.T) {
	for name, start := range map[string]func() (*server, error){"stock": shared.stock, "gate-off": shared.gateOff} {
		t.Run(name, func(t *testing.T) {
			k := newKind(t, ours(t), name+".rollback.example.com")
			rollbackEndsRefusals(k, name, k.at(mustServe(t, start)).await())
		})
	}
}

func rollbackEndsRefusals(k kind, name string, stock kind) {
	t := k.t
	k.create("a", finalizer)
	_, granted := k.graceful("a", 300)
	cached := k.get("a").body
	version := k.list().GetResourceVersion()
	if got := stock.without("a", cached.DeepCopy(), finalizer, true); got.code != http.StatusUnprocessableEntity {
		t.Fatalf("before: %d %s", got.code, got.text)
	}
	if got, code := exeunt(t, "ours", "rollback", "--deadlines-only", "--confirm"); code != 2 ||
		!strings.Contains(got, "9. blocked  Rewrite deadlines of custom resources") ||
		k.get("a").body.GetResourceVersion() != cached.GetResourceVersion() {
		t.Errorf("at ours: %s, exit code %d", got, code)
	}
	got, _ := exeunt(t, name, "rollback", "--deadlines-only", "--confirm") // other tests leave objects of their own
	if !strings.Contains(strings.Join(strings.Fields(got), " "),
		"rewritten: annotation exeunt.io/deletion-window of Machine default/a") {
		t.Errorf("at %s: %s", name, got)
	}
	events := stock.events(version)
	if len(events) != 1 || events[0].Object["type"] != "MODIFIED" {
		t.Fatalf("the informer gets %d events: %v", len(events), events)
	}
	fresh := object(events[0])
	deletionAtStock(t, answer{body: fresh}, granted)
	if got := stock.without("a", fresh, finalizer, true); got.code != http.StatusOK {
		t.Errorf("after: %d %s", got.code, got.text)
	}
	k.gone("a")
}
