package deletion

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller/metrics"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/controller/waiting"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/provisioner/backend"
	"github.com/exeunt-io/exeunt/pkg/provisioner/csibackend"
	"github.com/exeunt-io/exeunt/test/controllertest"
	"github.com/exeunt-io/exeunt/test/fuzzobj"
)

// slowDeleter deletes after some time, or fails.
type slowDeleter struct {
	csibackend.Deleter
	takes time.Duration
	err   error
}

func (d *slowDeleter) PrepareDelete(context.Context, *v1.PersistentVolume) (backend.DeleteCall, error) {
	return func(context.Context) error {
		<-time.After(d.takes)
		return d.err
	}, nil
}

func TestSlowDeletionHasEvent(t *testing.T) {
	for name, tc := range map[string]struct {
		takes time.Duration
		err   error
		want  string
	}{
		"driver takes 45 s":   {45 * time.Second, nil, "Normal DeletionWaiting DriverDeletes: "},
		"driver takes 20 s":   {20 * time.Second, nil, ""},
		"driver refuses":      {0, errors.New("in use"), ""}, // the event VolumeFailedDelete says more
		"secret is missing":   {0, &backend.SecretMissing{Secret: "ns/s", Sentence: "missing"}, ""},
		"left to another one": {0, &backend.Ignored{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			volume := releasedVolume()
			client := fake.NewClientset(volume)
			volumes := informers.NewSharedInformerFactory(client, 0).Core().V1().PersistentVolumes().Informer()
			c, err := New(Config{
				Client: client, Volumes: volumes, Honor: true,
				Deleter: &slowDeleter{csibackend.Deleter{Client: client, Driver: &shredder{}, Translator: &shredder{}}, tc.takes,
					tc.err},
				Reporter: controller.NewReporter(&record.FakeRecorder{}), Metrics: metrics.New("waiting"),
				Locks: &controller.KeyLocks{},
			})
			if err == nil {
				err = volumes.GetStore().Add(volume)
			}
			if err != nil {
				t.Fatal(err)
			}
			events := controllertest.EventsAfter(t, func(t *testing.T, tracker *waiting.Tracker) {
				c.Waiting = tracker
				if err := c.Reconcile(t.Context(), volume.Name); !errors.Is(err, tc.err) && err != nil {
					t.Error(err)
				}
			})
			if got := strings.Join(events, "; "); !strings.HasPrefix(got, tc.want) || (tc.want == "") != (got == "") {
				t.Errorf("events %q, want %q", got, tc.want)
			}
		})
	}
}

// Somebody may remove the finalizer by force while the driver works.
func TestVanishedVolumeDoesNotWait(t *testing.T) {
	volume := releasedVolume()
	client := fake.NewClientset(volume)
	volumes := informers.NewSharedInformerFactory(client, 0).Core().V1().PersistentVolumes().Informer()
	deleter := &slowDeleter{csibackend.Deleter{Client: client, Driver: &shredder{}, Translator: &shredder{}},
		45 * time.Second, errors.New("in use")}
	c, err := New(Config{
		Client: client, Volumes: volumes, Honor: true, Deleter: deleter,
		Reporter: controller.NewReporter(&record.FakeRecorder{}), Metrics: metrics.New("vanished"),
		Locks: &controller.KeyLocks{},
	})
	if err == nil {
		err = volumes.GetStore().Add(volume)
	}
	if err != nil {
		t.Fatal(err)
	}
	controllertest.EventsAfter(t, func(t *testing.T, tracker *waiting.Tracker) {
		c.Waiting = tracker
		time.AfterFunc(40*time.Second, func() {
			if err := volumes.GetStore().Delete(volume); err != nil {
				t.Error(err)
			}
			c.onVolumeDeleted(volume)
		})
		if err := c.Reconcile(t.Context(), volume.Name); !errors.Is(err, deleter.err) {
			t.Error(err)
		}
	})
	if got := testutil.CollectAndCount(c.Waiting, "exeunt_deletion_waiting"); got != 0 {
		t.Errorf("the metric counts %d reasons, though no volume is left", got)
	}
}

// releasedVolume returns a volume of the mock driver whose claim is gone.
func releasedVolume() *v1.PersistentVolume {
	volume := &v1.PersistentVolume{}
	volume.Name, volume.UID, volume.ResourceVersion, volume.Finalizers = "v", "u", "1",
		[]string{string(finalizer.External)}
	volume.Spec.PersistentVolumeReclaimPolicy = v1.PersistentVolumeReclaimDelete
	volume.Spec.CSI = &v1.CSIPersistentVolumeSource{Driver: fuzzobj.Driver, VolumeHandle: "v"}
	volume.Spec.ClaimRef = &v1.ObjectReference{Namespace: "ns", Name: "claim", UID: "c"}
	volume.Status.Phase = v1.VolumeReleased
	return volume
}

func TestBlockerNamesHolderAndNextStep(t *testing.T) {
	for _, reason := range []blocker.Reason{blocker.VolumeAttached, blocker.DriverDeletes, blocker.DriverRefuses,
		blocker.SecretMissing, blocker.HandleShared, blocker.JournalEntry} {
		got := blockerOf(releasedVolume(), reason, "the driver d")
		if got.Reason != reason || got.Holder == "" || !strings.Contains(got.Next, "kubectl exeunt why pv/v") {
			t.Errorf("%v: %+v", reason, got)
		}
		if stuck := reason == blocker.DriverRefuses || reason == blocker.SecretMissing ||
			reason == blocker.HandleShared; stuck != (got.Verdict == blocker.Stuck) {
			t.Errorf("%v: verdict %v", reason, got.Verdict)
		}
	}
}
