package garbagecollector

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

func TestUntilNextCheck(t *testing.T) {
	for name, tc := range map[string]struct {
		check, failures int
		found           bool
		want            time.Duration
	}{
		"soon after the start":              {0, 0, false, time.Minute},
		"later if there is no other":        {1, 0, false, 10 * time.Minute},
		"soon while another is at work":     {7, 0, true, time.Minute},
		"soon if another is at work then":   {0, 0, true, time.Minute},
		"soon after a failure":              {1, 1, false, time.Minute},
		"later after a second failure":      {2, 2, true, 2 * time.Minute},
		"not less often than other checks":  {5, 5, false, 10 * time.Minute},
		"not less often after many of them": {90, 90, false, 10 * time.Minute},
	} {
		if got := untilNextCheck(tc.check, tc.failures, tc.found); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// detecting returns the search for other collectors in the namespace kube-system of the client.
func detecting(t *testing.T, objects ...runtime.Object) (*otherCollectors, *fake.Clientset, *record.FakeRecorder) {
	client, recorder := fake.NewClientset(objects...), record.NewFakeRecorder(100)
	client.PrependReactor("create", "leases", func(action clienttesting.Action) (bool, runtime.Object, error) {
		action.(clienttesting.CreateAction).GetObject().(*coordinationv1.Lease).UID = uuid.NewUUID()
		return false, nil, nil
	})
	t.Helper()
	detection := &Detection{Client: client.CoordinationV1().Leases("kube-system"), Namespace: "kube-system",
		LeaderLease: "garbage-collector"}
	return newOtherCollectors(&Config{Clock: clock.RealClock{}, Recorder: recorder, Detection: detection}), client,
		recorder
}

// detectFor looks for others for the time.
func (o *otherCollectors) detectFor(t *testing.T, duration time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), duration)
	defer cancel()
	o.detect(ctx)
}

// verbs returns the number of requests with the verb.
func verbs(client *fake.Clientset, verb string) int {
	return len(slices.DeleteFunc(slices.Clone(client.Actions()),
		func(a clienttesting.Action) bool { return a.GetVerb() != verb }))
}

func expectNoLeases(t *testing.T, client *fake.Clientset) {
	t.Helper()
	list, err := client.CoordinationV1().Leases("kube-system").
		List(context.WithoutCancel(t.Context()), metav1.ListOptions{})
	if err != nil || len(list.Items) > 0 {
		t.Errorf("leases: %v, %v", list.Items, err)
	}
}

func TestNoOtherCollector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, client, recorder := detecting(t)
		o.detectFor(t, 12*time.Minute) // checks after 0, 1 and 11 minutes
		if o.hasFound() || len(recorder.Events) > 0 || verbs(client, "create") != 3 {
			t.Errorf("found %v, %d events, %d checks", o.hasFound(), len(recorder.Events), verbs(client, "create"))
		}
		expectNoLeases(t, client)
	})
}

func TestOtherCollectorIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, client, recorder := detecting(t)
		other, stop := context.WithCancel(t.Context())
		go deleteLeases(other, client)
		o.detectFor(t, 90*time.Second)
		if !o.hasFound() || len(recorder.Events) != 2 {
			t.Fatalf("found %v, %d events", o.hasFound(), len(recorder.Events))
		}
		if text := <-recorder.Events; !strings.HasPrefix(text,
			"Warning OtherGarbageCollector Another garbage collector is at work") {
			t.Errorf("event: %s", text)
		}
		stop()
		synctest.Wait()
		o.detectFor(t, time.Minute)
		if o.hasFound() {
			t.Error("the other one ended, and is still reported")
		}
		expectNoLeases(t, client)
	})
}

// deleteLeases deletes all leases, as another collector does.
func deleteLeases(ctx context.Context, client *fake.Clientset) {
	leases := client.CoordinationV1().Leases("kube-system")
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(3 * time.Second):
		}
		list, _ := leases.List(ctx, metav1.ListOptions{})
		for _, lease := range list.Items {
			_ = leases.Delete(ctx, lease.Name, metav1.DeleteOptions{})
		}
	}
}

// Another process deletes the test Lease, but a finalizer keeps it; or creates another Lease under its name.
func TestChangedTestLeaseMeansOtherCollector(t *testing.T) {
	for name, change := range map[string]func(*coordinationv1.Lease){
		"terminating": func(l *coordinationv1.Lease) { l.DeletionTimestamp = &metav1.Time{Time: time.Now()} },
		"another UID": func(l *coordinationv1.Lease) { l.UID = "other" },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o, client, _ := detecting(t)
				client.PrependReactor("get", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
					lease := &coordinationv1.Lease{}
					change(lease)
					return true, lease, nil
				})
				if found, err := o.awaitDeletion(t.Context(),
					&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "test-lease"}}); !found || err != nil {
					t.Errorf("found %v, %v", found, err)
				}
			})
		})
	}
}

// An admission webhook, or a missing right, refuses a request for a time. The test Leases do not become many meanwhile.
func TestRefusedCheckIsRepeatedUntilItSucceeds(t *testing.T) {
	for _, verb := range []string{"create", "list", "delete"} {
		t.Run(verb, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o, client, recorder := detecting(t)
				lifted := time.Now().Add(time.Hour)
				client.PrependReactor(verb, "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
					return time.Now().Before(lifted), nil, apierrors.NewForbidden(coordinationv1.Resource("leases"), "",
						errors.New("denied"))
				})
				o.detectFor(t, time.Hour-time.Minute)
				// after 0, 1, 3, 7, 15, 25, 35, 45 and 55 minutes
				if got := verbs(client, verb); !o.hasCheckFailed() || o.hasFound() || got < 6 || got > 10 ||
					verbs(client, "create") > 10 {
					t.Errorf("failed %v, %d requests, %d test Leases", o.hasCheckFailed(), got, verbs(client, "create"))
				}
				list, _ := client.CoordinationV1().Leases("kube-system").
					List(context.WithoutCancel(t.Context()), metav1.ListOptions{})
				if list != nil && len(list.Items) > 1 {
					t.Errorf("%d test Leases are left", len(list.Items))
				}
				other, stop := context.WithCancel(t.Context())
				defer stop()
				time.AfterFunc(2*time.Minute, func() { deleteLeases(other, client) })
				o.detectFor(t, 12*time.Minute)
				if o.hasCheckFailed() || !o.hasFound() || len(recorder.Events) == 0 {
					t.Errorf("after the refusal: failed %v, found %v", o.hasCheckFailed(), o.hasFound())
				}
			})
		})
	}
}

func TestFailedCheckKeepsVerdictAndIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, client, recorder := detecting(t)
		o.found = true
		client.PrependReactor("create", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, errors.New("connection refused")
		})
		o.detectFor(t, 150*time.Second)
		if !o.hasFound() || len(recorder.Events) > 0 || verbs(client, "create") != 2 {
			t.Errorf("found %v, %d checks", o.hasFound(), verbs(client, "create"))
		}
	})
}

func TestStopDeletesTestLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, client, recorder := detecting(t)
		o.detectFor(t, 5*time.Second)
		if verbs(client, "create") != 1 || len(recorder.Events) > 0 {
			t.Errorf("%d checks", verbs(client, "create"))
		}
		expectNoLeases(t, client)
	})
}

func TestTestLeaseOfKilledProcessIsDeleted(t *testing.T) {
	old := newTestLease()
	old.Namespace, old.UID = "kube-system", "old"
	foreign := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "garbage-collector"}}
	o, client, _ := detecting(t, old, foreign)
	if err := o.deleteOldTestLeases(t.Context()); err != nil {
		t.Error(err)
	}
	list, _ := client.CoordinationV1().Leases("kube-system").List(t.Context(), metav1.ListOptions{})
	if len(list.Items) != 1 || list.Items[0].Name != foreign.Name {
		t.Errorf("leases: %v", list.Items)
	}
	for _, action := range client.Actions() {
		deletion, is := action.(clienttesting.DeleteAction)
		if !is {
			continue
		}
		if conditions := deletion.GetDeleteOptions().Preconditions; conditions == nil || conditions.UID == nil ||
			*conditions.UID != old.UID {
			t.Errorf("deleted with the preconditions %v", conditions)
		}
	}
}

// Our own collector leaves its test Lease alone, and nothing else.
func TestOwnTestLeaseIsNotCollected(t *testing.T) {
	s := newAPIServer(t)
	s.lack("absent")
	c := connected(t, s, Config{})
	absent := graph.Coordinates{GroupKind: configMaps.GroupKind(), Namespace: "ns", Name: "absent"}
	path := "/apis/coordination.k8s.io/v1/namespaces/ns/leases/"
	for _, name := range []string{"test-lease", "other"} {
		s.answer("DELETE "+path+name, 200, &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
			Status: metav1.StatusSuccess, Details: &metav1.StatusDetails{UID: types.UID(name)}})
		object := configMap(name, "2", "absent")
		c.change(func(g *graph.Graph) {
			g.Serve(leaseKind)
			g.Observe(leaseKind, &object)
			g.Deleted("absent", absent)
		})
	}
	object := configMap("namesake", "2", "absent")
	object.Name = "test-lease"
	s.answer("DELETE "+configMapPath+"test-lease", 200,
		&metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess,
			Details: &metav1.StatusDetails{UID: "namesake"}})
	c.observe(object)
	c.others.keep("test-lease")
	for _, uid := range []types.UID{"test-lease", "other", "namesake"} {
		if err := c.worker.reconcile(t.Context(), uid); err != nil {
			t.Error(err)
		}
	}
	if s.count("DELETE "+path+"test-lease") != 0 || s.count("DELETE "+path+"other") != 1 ||
		s.count("DELETE "+configMapPath+"test-lease") != 1 {
		t.Errorf("requests: %v", s.requests)
	}
	c.others.keep("")
	if err := c.worker.reconcile(t.Context(), "test-lease"); err != nil || s.count("DELETE "+path+"test-lease") != 1 {
		t.Errorf("the test Lease that was left is not collected: %v, %v", err, s.requests)
	}
}

// A webhook may deny the deletion with 404.
func TestTestLeaseWhoseDeletionWasDeniedIsReported(t *testing.T) {
	left := newTestLease()
	left.Namespace, left.UID = "kube-system", "left"
	o, client, _ := detecting(t, left)
	client.PrependReactor("delete", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewNotFound(coordinationv1.Resource("leases"), left.Name)
	})
	if err := o.deleteTestLease(t.Context(), left); err == nil {
		t.Error("the test Lease that exists counts as deleted")
	}
	if err := client.Tracker().Delete(coordinationv1.SchemeGroupVersion.WithResource("leases"), "kube-system",
		left.Name); err != nil {
		t.Fatal(err)
	}
	if err := o.deleteTestLease(t.Context(), left); err != nil {
		t.Errorf("the test Lease is gone: %v", err)
	}
}
