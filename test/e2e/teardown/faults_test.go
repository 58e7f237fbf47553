package teardown

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/exeunt-io/exeunt/pkg/alive"
	core "github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/pkg/teardown/runner"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// transport is an http.RoundTripper.
type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(request *http.Request) (*http.Response, error) { return t(request) }

var errKilled = errors.New("the process was killed")

// killedAfter ends a runner with the answer to its n-th request: it is carried out, and the answer is lost.
func (r *rig) killedAfter(n int64) (*runner.Outcome, error) {
	r.T.Helper()
	ctx, kill := context.WithCancelCause(r.Ctx)
	defer kill(nil)
	var sent atomic.Int64
	connection := r.Plane.RESTConfig()
	connection.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return transport(func(request *http.Request) (*http.Response, error) {
			count := sent.Add(1)
			if count < n {
				return next.RoundTrip(request)
			}
			if count == n {
				if response, err := next.RoundTrip(request); err == nil {
					_ = response.Body.Close()
				}
			}
			kill(errKilled)
			return nil, errKilled
		})
	})
	return runner.New(r.configFor(connection)).Teardown(ctx, runner.Word{Timeout: time.Hour})
}

// endLease lets the next runner begin at once: the process that had the Lease is dead.
func (r *rig) endLease() {
	r.T.Helper()
	err := r.Client.CoordinationV1().Leases(runner.Namespace).Delete(r.Ctx, runner.LeaseName, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		r.T.Fatalf("end the Lease: %v", err)
	}
}

// Row 60: the end and the report are those of one runner, and DeleteVolume is called once for each disk.
func TestKilledRunnersDeleteEachDiskOnce(t *testing.T) {
	const claims, kills = 200, 20
	r := newRig(t, harness.Setup{Teardown: true})
	parallel(t, claims, func(i int) {
		r.CreateClaim(fmt.Sprint("data-", i), []string{harness.DeleteClass, harness.RetainClass}[i%2])
	})
	disks := r.awaitDisks(claims)
	seed := uint64(time.Now().UnixNano())
	random, killed := rand.New(rand.NewPCG(seed, 0)), 0
	for range kills {
		n := 1 + random.Int64N(80)
		if outcome, err := r.killedAfter(n); err != nil {
			killed++
			r.endLease()
		} else if outcome.Phase != core.Complete {
			t.Fatalf("seed %d: a runner that was to be killed at request %d ended with %+v", seed, n, outcome)
		}
	}
	if killed < kills/2 {
		t.Errorf("seed %d: %d runners were killed", seed, killed)
	}
	work := runner.New(r.config())
	outcome, err := work.Teardown(r.Ctx, runner.Word{Timeout: time.Hour})
	if err != nil || outcome.Phase != core.Complete {
		t.Fatalf("seed %d: the last runner ended with %+v, %v", seed, outcome, err)
	}
	r.expectDisks(disks...)
	report, err := work.Report(r.Ctx)
	r.Must(err, "report")
	r.expectReported(fmt.Sprint("seed ", seed), report, disks)
}

// awaitDisks waits until all claims are bound. Disks of the policy Retain stay.
func (r *rig) awaitDisks(claims int) []disk {
	r.T.Helper()
	r.AwaitManyBound(claims)
	volumes, err := r.Client.CoreV1().PersistentVolumes().List(r.Ctx, metav1.ListOptions{})
	r.Must(err, "list volumes")
	var disks []disk
	for i := range volumes.Items {
		volume := &volumes.Items[i]
		disks = append(disks, disk{name: volume.Spec.ClaimRef.Name, handle: harness.Handle(volume), volume: volume.Name,
			stays: volume.Spec.PersistentVolumeReclaimPolicy == v1.PersistentVolumeReclaimRetain})
	}
	return disks
}

// expectReported checks that the report has each disk with its fate, and that DeleteVolume was called once for each one
// that is gone, for no other.
func (r *rig) expectReported(run string, report *core.Document, disks []disk) {
	r.T.Helper()
	got := fates(report)
	if len(disks) == 0 || len(got) != len(disks) || len(report.Incomplete) > 0 {
		r.T.Errorf("%s: the report has %d items of %d, and lacks %q", run, len(got), len(disks), report.Incomplete)
	}
	for _, d := range disks {
		calls, fate := 1, core.Gone
		if d.stays {
			calls, fate = 0, core.Kept
		}
		if count := r.CountCalls("DeleteVolume", d.handle); count != calls || got[d.handle] != fate {
			r.T.Errorf("%s: %s: %d calls of DeleteVolume, want %d; its fate is %q, want %q", run, d.name, count, calls,
				got[d.handle], fate)
		}
	}
}

// Row 61.
func TestTwoRunnersDeleteOnce(t *testing.T) {
	r := newRig(t, harness.Setup{Teardown: true})
	a, b := r.addDynamic("a", harness.DeleteClass), r.addDynamic("b", harness.DeleteClass)
	var both sync.WaitGroup
	for range 2 {
		config := r.config()
		both.Go(func() {
			outcome, err := runner.New(config).Teardown(r.Ctx, runner.Word{Timeout: time.Hour})
			if err != nil || outcome.Phase != core.Complete {
				t.Errorf("a runner ended with %+v, %v", outcome, err)
			}
		})
	}
	both.Wait()
	r.expectDisks(a, b)
	for _, d := range []disk{a, b} {
		if calls := r.CountCalls("DeleteVolume", d.handle); calls != 1 {
			t.Errorf("%d calls of DeleteVolume for %s", calls, d.name)
		}
	}
}

// during runs change once, when the teardown first has the phase, and carries the teardown on.
func (r *rig) during(phase core.Phase, change func()) (*runner.Outcome, error) {
	r.T.Helper()
	changed := false
	outcome, err := r.tearDown(r.Ctx, func(c *runner.Config) {
		c.Follow = func(p runner.Progress) {
			if p.Phase == phase && p.Leading && !changed {
				changed = true
				change()
			}
		}
	})
	if !changed {
		r.T.Errorf("the teardown never was %s", phase)
	}
	return outcome, err
}

func (r *rig) patchAlive(body string) {
	r.T.Helper()
	clients, err := runner.Connect(r.Plane.RESTConfig(), nil)
	r.Must(err, "connect")
	_, err = clients.Dynamic.Resource(alive.Resource).Patch(r.Ctx, alive.Name, types.MergePatchType, []byte(body),
		metav1.PatchOptions{FieldManager: "gitops"})
	r.Must(err, "change Alive")
}

// Row 56, and the way on.
func TestProtectionStopsTheTeardown(t *testing.T) {
	r := newRig(t, stock)
	written := r.addDynamic("data", harness.DeleteClass)
	r.createUser("writer", written.name)
	outcome, err := r.during(core.TearingDown, func() { r.patchAlive(`{"spec":{"protected":true}}`) })
	if err != nil || outcome.Phase != core.Stopped || outcome.Reason != core.IsProtected ||
		!strings.Contains(outcome.Message, `"gitops"`) {
		t.Fatalf("the teardown ended with %+v, %v", outcome, err)
	}
	r.expectDisks(keep(written))
	r.mustComplete()
	r.expectDisks(written)
}

// Row 57.
func TestStrippedAliveIsNoSuccess(t *testing.T) {
	r := newRig(t, stock)
	written := r.addDynamic("data", harness.DeleteClass)
	r.createUser("writer", written.name)
	outcome, err := r.during(core.TearingDown, func() { r.patchAlive(`{"metadata":{"finalizers":null}}`) })
	if err == nil && outcome.Phase == core.Complete {
		t.Errorf("the teardown ended with %+v", outcome)
	}
	if outcome, err := r.tearDown(r.Ctx); !errors.Is(err, runner.ErrNotCompleted) {
		t.Errorf("the next teardown ended with %+v, %v", outcome, err)
	}
	r.expectDisks(keep(written))
}

// Row 68.
func TestRemovedFreezeIsWrittenAgain(t *testing.T) {
	r := newRig(t, stock)
	written := r.addDynamic("data", harness.DeleteClass)
	r.createUser("writer", written.name)
	outcome, err := r.during(core.TearingDown, func() {
		r.Must(r.Client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Delete(r.Ctx, runner.FreezeName,
			metav1.DeleteOptions{}), "delete the binding of the freeze")
	})
	if err != nil || outcome.Phase != core.Complete {
		t.Fatalf("the teardown ended with %+v, %v", outcome, err)
	}
	if !r.isFrozen() {
		t.Error("claims can be created after the end")
	}
	r.expectDisks(written)
	found := false
	for len(r.events.Events) > 0 {
		event := <-r.events.Events
		found = found || strings.Contains(event, "reeze")
	}
	if !found {
		t.Error("no event says that the freeze was removed")
	}
}

// Row 62: etcd and the API server are killed before anything is deleted.
func TestRestartOfAPIServerKeepsTheFreeze(t *testing.T) {
	eachPair(t, harness.Setup{Restarts: true}, func(t *testing.T, r *rig) {
		written := r.addDynamic("data", harness.DeleteClass)
		outcome, err := r.during(core.Preparing, func() {
			r.Must(r.Plane.Restart(r.Ctx, func() error { return nil }), "restart the API server")
		})
		if err != nil || outcome.Phase != core.Complete {
			t.Fatalf("the teardown ended with %+v, %v", outcome, err)
		}
		if !r.isFrozen() {
			t.Error("claims can be created after the end")
		}
		r.expectDisks(written)
	})
}

// Row 70: a name that leads to another cluster in mid-run.
func TestOtherClusterBehindTheAddressIsLeftAlone(t *testing.T) {
	r := newRig(t, stock)
	other := rigOf(harness.Own(t, stock, harness.Within(2*time.Minute)))
	written, foreign := r.addDynamic("data", harness.DeleteClass), other.addDynamic("data", harness.DeleteClass)
	r.createUser("writer", written.name)
	other.arm()
	var moved atomic.Bool
	theirConfig := other.Plane.RESTConfig()
	theirs, err := rest.TransportFor(theirConfig)
	r.Must(err, "connect to the other cluster")
	connection := r.Plane.RESTConfig()
	connection.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return transport(func(request *http.Request) (*http.Response, error) {
			if !moved.Load() {
				return next.RoundTrip(request)
			}
			request = request.Clone(request.Context())
			request.URL.Host = strings.TrimPrefix(theirConfig.Host, "https://")
			return theirs.RoundTrip(request)
		})
	})
	config := r.configFor(connection)
	config.Follow = func(p runner.Progress) {
		if p.Phase == core.TearingDown {
			moved.Store(true)
		}
	}
	outcome, err := runner.New(config).Teardown(r.Ctx, runner.Word{Timeout: time.Hour})
	if !errors.Is(err, runner.ErrOtherCluster) {
		t.Errorf("the teardown ended with %+v, %v", outcome, err)
	}
	other.expectDisks(keep(foreign))
}

// arm permits the teardown of a cluster that something refuses, so that nothing begins.
func (r *rig) arm() {
	r.T.Helper()
	outcome, err := r.tearDown(r.Ctx, func(c *runner.Config) {
		c.Check = func(context.Context, *alive.Alive) ([]core.Problem, error) {
			return []core.Problem{{Reason: "Test", Text: "the test refuses", Refuses: true}}, nil
		}
	})
	if err != nil || outcome.Reason != core.NotReady {
		r.T.Fatalf("arm: %+v, %v", outcome, err)
	}
}
