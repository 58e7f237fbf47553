package provisioning

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/csimock"
	"github.com/exeunt-io/exeunt/pkg/provision"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// newObserver returns a controller that can observe, but not act. Its cache has the volumes
// and a class "late" with the binding mode WaitForFirstConsumer.
func newObserver(t *testing.T, volumes ...*v1.PersistentVolume) *Controller {
	t.Helper()
	client := fake.NewClientset()
	factory := informers.NewSharedInformerFactory(client, 0)
	c := &Controller{versions: controller.NewVersions(), memory: newMemory(), Config: Config{
		Client: client, Caches: cachesOf(factory),
		Backend: &directories{}, Scope: serves(csimock.DefaultName), Timeouts: DefaultTimeouts,
	}}
	late := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "late"},
		VolumeBindingMode: ptr.To(storagev1.VolumeBindingWaitForFirstConsumer)}
	err := c.Classes.GetStore().Add(late)
	for _, volume := range volumes {
		err = errors.Join(err, c.Volumes.GetStore().Add(volume))
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// observed returns the observation of a pending claim of the driver, after the changes.
func observed(record claimRecord, changes ...func(*observation)) *observation {
	o := &observation{claim: claimOf(storage.AnnStorageProvisioner, csimock.DefaultName), name: "pvc-uid", record: record}
	for _, change := range changes {
		change(o)
	}
	return o
}

func goneClaim(o *observation) { o.gone = true }

// named returns a change of the claim to one that names the volume.
func named(volume string) func(*observation) {
	return func(o *observation) { o.claim.Spec.VolumeName = volume }
}

func boundClaim(o *observation) {
	o.claim.Spec.VolumeName, o.claim.Status.Phase = o.name, v1.ClaimBound
}

func TestClaimWithoutHistoryIsFresh(t *testing.T) {
	for name, tc := range map[string]struct {
		o       *observation
		volumes []*v1.PersistentVolume
		fresh   bool
	}{
		"new claim":              {observed(claimRecord{}), nil, true},
		"gone claim":             {observed(claimRecord{}, goneClaim), nil, false},
		"driver called before":   {observed(claimRecord{claim: claimFacts{requested: true}}), nil, false},
		"volume recorded before": {observed(claimRecord{object: objectFacts{recorded: true}}), nil, false},
		"entry":                  {observed(claimRecord{entry: entryFacts{state: provision.Durable}}), nil, false},
		"volume named":           {observed(claimRecord{}, named("another")), nil, false},
		"cached volume":          {observed(claimRecord{}), []*v1.PersistentVolume{{ObjectMeta: metav1.ObjectMeta{Name: "pvc-uid"}}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := newObserver(t, tc.volumes...)
			c.Streamed = func(version string) bool { return version == "7" }
			if fresh := c.isFresh(tc.o); fresh != tc.fresh {
				t.Errorf("fresh: %v, want %v", fresh, tc.fresh)
			}
		})
	}
}

func TestStaleClaimIsNotObserved(t *testing.T) {
	c := newObserver(t)
	claim := claimOf(storage.AnnStorageProvisioner, csimock.DefaultName)
	if err := c.Claims.GetStore().Add(claim); err != nil {
		t.Fatal(err)
	}
	written := claim.DeepCopy()
	written.ResourceVersion = "8"
	c.versions.RecordWrite(written)
	if o, err := c.observe(t.Context(), "ns/c/uid"); !errors.Is(err, controller.ErrStaleCache) {
		t.Errorf("observe = %+v, %v", o, err)
	}
}

func TestRequestIsLongOpen(t *testing.T) {
	for name, tc := range map[string]struct {
		creation provision.Creation
		entry    provision.Entry
		age      time.Duration
		long     bool
	}{
		"just long enough":     {provision.Requested, provision.Durable, DefaultTimeouts.RepeatedFailure, true},
		"not yet":              {provision.Requested, provision.Durable, DefaultTimeouts.RepeatedFailure - 1, false},
		"no open call":         {provision.Doubtful, provision.Durable, time.Hour, false},
		"without an entry":     {provision.Requested, provision.NoEntry, time.Hour, false},
		"volume being deleted": {provision.Requested, provision.Discarding, time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // with a clock that stands still
				r := claimRecord{
					claim: claimFacts{openedAt: time.Now().Add(-tc.age)}, request: requestFacts{creation: tc.creation},
					entry: entryFacts{state: tc.entry},
				}
				if long := r.isLongRequested(DefaultTimeouts.RepeatedFailure); long != tc.long {
					t.Errorf("long: %v, want %v", long, tc.long)
				}
			})
		})
	}
}

// serveBy has the claim served by the process: this one serves all nodes, or another one than the claim's.
func serveBy(c *Controller, o *observation, server provision.Server) {
	if server != provision.ThisProcess {
		c.Scope = testScope{provisioners: []string{csimock.DefaultName}, node: "mine"}
	}
	if server == provision.OtherProcess {
		o.claim.Annotations[storage.AnnSelectedNode] = "yours"
	}
}

func TestLongOpenRequestIsBuiltAnew(t *testing.T) {
	for name, tc := range map[string]struct {
		own, selected, unfit string
		want                 provision.Want
		anew                 bool
	}{
		"claim waits, process for all nodes":       {"", "mine", "", provision.Wanted, true},
		"claim waits, process for one node":        {"mine", "mine", "", provision.Wanted, true},
		"node is left, process for all nodes":      {"", "mine", "", provision.Misplaced, true},
		"node is left, process for one node":       {"mine", "mine", "", provision.Misplaced, false},
		"full node is left, process for one node":  {"mine", "mine", "mine", provision.Misplaced, true},
		"another node is full":                     {"mine", "mine", "yours", provision.Misplaced, false},
		"no node is selected or full, one process": {"mine", "", "", provision.Misplaced, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := newObserver(t)
			c.Scope = testScope{node: tc.own}
			o := observed(claimRecord{
				claim: claimFacts{unfit: tc.unfit}, request: requestFacts{creation: provision.Requested},
				entry: entryFacts{state: provision.Durable},
			})
			o.claim.Annotations[storage.AnnSelectedNode] = tc.selected
			if anew := c.mayBuildAnew(o, tc.want); anew != tc.anew {
				t.Errorf("built anew: %v, want %v", anew, tc.anew)
			}
			o.record.claim.openedAt = time.Now()
			if c.mayBuildAnew(o, tc.want) {
				t.Error("a request that was just sent is built anew")
			}
		})
	}
}

func TestOpenRequestIsFinishedByItsProcess(t *testing.T) {
	for name, tc := range map[string]struct {
		record claimRecord
		want   provision.Server
	}{
		"nothing to finish": {claimRecord{}, provision.OtherProcess},
		"request":           {claimRecord{request: requestFacts{plan: &plan{}}}, provision.ThisProcess},
		"created volume":    {claimRecord{disk: diskFacts{volume: &v1.PersistentVolume{}}}, provision.ThisProcess},
		"entry":             {claimRecord{entry: entryFacts{state: provision.Inherited}}, provision.ThisProcess},
	} {
		t.Run(name, func(t *testing.T) {
			c := newObserver(t)
			o := observed(tc.record)
			serveBy(c, o, provision.OtherProcess)
			if server := c.serverOf(o); server != tc.want {
				t.Errorf("server %v, want %v", server, tc.want)
			}
		})
	}
}

func TestUnbuildableRequestIsRefused(t *testing.T) {
	for cause := range provision.OtherProvisionerUnnamed + 1 {
		want := cause == provision.RequestFailed || cause == provision.OtherProvisioner ||
			cause == provision.OtherProvisionerUnnamed
		if refused := (&observation{cause: cause}).isRefused(); refused != want {
			t.Errorf("%v: refused: %v", cause, refused)
		}
	}
}

func TestEntryIsOutdatedByAnotherRequest(t *testing.T) {
	for name, tc := range map[string]struct {
		entry       provision.Entry
		request     string
		alternative bool
		want        provision.Entry
	}{
		"same request":       {provision.Durable, "stored", false, provision.Durable},
		"another request":    {provision.Durable, "changed", false, provision.Outdated},
		"superseded request": {provision.Durable, "changed", true, provision.Durable},
		"no entry":           {provision.NoEntry, "changed", false, provision.NoEntry},
		"discarding":         {provision.Discarding, "changed", false, provision.Discarding},
	} {
		t.Run(name, func(t *testing.T) {
			o := observed(claimRecord{entry: entryFacts{state: tc.entry, stored: directoryPlan("stored")}})
			o.plan = directoryPlan(tc.request)
			o.plan.alternative = tc.alternative
			if entry := entryOf(o); entry != tc.want {
				t.Errorf("entry %v, want %v", entry, tc.want)
			}
		})
	}
}

func TestWantOfClaim(t *testing.T) {
	theirs := func(o *observation) { o.claim.Annotations[storage.AnnStorageProvisioner] = "theirs" }
	late := func(o *observation) { o.claim.Spec.StorageClassName = ptr.To("late") }
	for name, tc := range map[string]struct {
		o      *observation
		server provision.Server
		want   provision.Want
	}{
		"pending":              {observed(claimRecord{}), provision.ThisProcess, provision.Wanted},
		"bound":                {observed(claimRecord{}, boundClaim), provision.ThisProcess, provision.BoundOrLost},
		"bound once, gone":     {observed(claimRecord{}, boundClaim, goneClaim), provision.ThisProcess, provision.Unwanted},
		"names another volume": {observed(claimRecord{}, named("another")), provision.ThisProcess, provision.Unwanted},
		"volume is unusable": {observed(claimRecord{request: requestFacts{creation: provision.Created},
			disk: diskFacts{unusable: "too small"}}), provision.ThisProcess, provision.Misplaced},
		"served by another node":       {observed(claimRecord{}), provision.OtherProcess, provision.Unserved},
		"gone, served by another node": {observed(claimRecord{}, goneClaim), provision.OtherProcess, provision.Unserved},
		"asked once, served by another node": {observed(claimRecord{request: requestFacts{creation: provision.Failed,
			plan: &plan{}}}), provision.OtherProcess, provision.Unserved},
		"in doubt, served by another node": {observed(claimRecord{request: requestFacts{creation: provision.Doubtful,
			plan: &plan{}}, entry: entryFacts{state: provision.Durable}}), provision.OtherProcess, provision.Unserved},
		"entry unknown, served by another": {observed(claimRecord{entry: entryFacts{state: provision.Outdated}}), provision.OtherProcess, provision.Unserved},
		"asked once, no node selected": {observed(claimRecord{request: requestFacts{creation: provision.Failed,
			plan: &plan{}}}), provision.NoProcess, provision.Unserved},
		"asked once, deleted, another node": {observed(claimRecord{request: requestFacts{creation: provision.Doubtful,
			plan: &plan{}}}, goneClaim), provision.OtherProcess, provision.Unwanted},
		"call is open, another node": {observed(claimRecord{claim: claimFacts{node: "before"}, request: requestFacts{creation: provision.Requested, plan: &plan{}}}), provision.OtherProcess, provision.Misplaced},
		"call is long open, another node": {
			observed(claimRecord{claim: claimFacts{node: "before"}, request: requestFacts{creation: provision.Requested, plan: &plan{}}, entry: entryFacts{state: provision.Durable}}), provision.OtherProcess, provision.Misplaced},
		"call is open for another node": {
			observed(claimRecord{claim: claimFacts{node: "yours"}, request: requestFacts{creation: provision.Requested, plan: &plan{}}}),
			provision.OtherProcess, provision.Wanted},
		"unusable volume, served by another": {observed(claimRecord{request: requestFacts{creation: provision.Created}, disk: diskFacts{volume: &v1.PersistentVolume{}, unusable: "too small"}}), provision.OtherProcess, provision.Misplaced},
		"no node selected":                   {observed(claimRecord{}), provision.NoProcess, provision.Unserved},
		"of another provisioner":             {observed(claimRecord{}, theirs), provision.ThisProcess, provision.Unserved},
		"waits for a consumer":               {observed(claimRecord{}, late), provision.ThisProcess, provision.Unserved},
	} {
		t.Run(name, func(t *testing.T) {
			c := newObserver(t)
			serveBy(c, tc.o, tc.server)
			if want := c.wantOf(tc.o); want != tc.want {
				t.Errorf("want %v, want %v", want, tc.want)
			}
		})
	}
}

func TestRecordOfUncachedVolume(t *testing.T) {
	for name, tc := range map[string]struct {
		object  objectFacts
		written bool
		age     time.Duration
		want    storage.Record
	}{
		"never written":       {objectFacts{}, false, 0, storage.RecordAbsent},
		"name conflict":       {objectFacts{conflict: true}, false, 0, storage.RecordConflict},
		"written just now":    {objectFacts{}, true, 0, storage.RecordPresent},
		"almost missed":       {objectFacts{}, true, DefaultTimeouts.Unseen - 1, storage.RecordPresent},
		"missed":              {objectFacts{}, true, DefaultTimeouts.Unseen, storage.RecordAbsent},
		"written, seen since": {objectFacts{seen: true}, true, 0, storage.RecordAbsent},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if tc.written {
					tc.object.savedAt = time.Now().Add(-tc.age)
				}
				if record := newObserver(t).recordOf(observed(claimRecord{object: tc.object})); record != tc.want {
					t.Errorf("record %v, want %v", record, tc.want)
				}
			})
		})
	}
}
