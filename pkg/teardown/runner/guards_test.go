package runner

import (
	"context"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/exeunt-io/exeunt/pkg/alive"
	"github.com/exeunt-io/exeunt/pkg/teardown"
)

// scene is a teardown amid its work: the claim shop/data is the next that is deleted, with its disk.
type scene struct {
	// watched is Alive as the watch shows it, live as it is.
	watched, live *alive.Alive
	system        types.UID
	// seen are the volumes that the watch shows, disk is that of the claim as it is, nil if it is gone.
	seen []*v1.PersistentVolume
	disk *v1.PersistentVolume
	// renewed is when the Lease was renewed last before this term.
	renewed         time.Time
	leads           leads
	planned, frozen bool
	undefined       bool
}

// newScene returns a scene in which nothing stands against the deletion.
func newScene() *scene {
	object := deletedAlive(true)
	object.Finalizers, object.Spec.ConfirmedAt = []string{alive.Finalizer}, new(metav1.Now())
	disk := testVolume("data", v1.VolumeBound)
	disk.Annotations = map[string]string{"pv.kubernetes.io/provisioned-by": "ebs"}
	disk.Spec.CSI = &v1.CSIPersistentVolumeSource{Driver: "ebs", VolumeHandle: "vol-1"}
	return &scene{watched: object, live: object.DeepCopy(), system: clusterID, seen: []*v1.PersistentVolume{disk},
		disk: disk.DeepCopy(), renewed: time.Now(), leads: true, planned: true, frozen: true}
}

// both changes what the watch shows, and what is.
func (c *scene) both(change func(*alive.Alive)) {
	change(c.watched)
	change(c.live)
}

// play runs one round, and reports whether it deleted the claim, and whether Alive is Started then.
func (c *scene) play(t *testing.T) (deletes, started bool) {
	t.Helper()
	objects := []runtime.Object{&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: c.system}}}
	if c.disk != nil {
		objects = append(objects, c.disk)
	}
	r := newTestRunner(t, c.live, objects...)
	r.Check = func(context.Context, *alive.Alive) ([]teardown.Problem, error) { return nil, nil }
	r.Dynamic.(*dynamicfake.FakeDynamicClient).PrependReactor("delete", "persistentvolumeclaims",
		func(clienttesting.Action) (bool, runtime.Object, error) {
			deletes = true
			return true, nil, nil
		})
	r.Dynamic.(*dynamicfake.FakeDynamicClient).PrependReactor("get", definitions.Resource,
		func(clienttesting.Action) (bool, runtime.Object, error) {
			definition := frozen("", "")[0]
			definition.SetName(alive.CRD)
			return true, definition, nil
		})
	r.current, r.synced = c.watched, true
	s := c.session(r)
	_, _ = s.round(t.Context(), t.Context(), nil) // an error of the round is that of the guard
	s.background.Wait()
	object, err := r.readAlive(t.Context())
	return deletes, err == nil && object != nil && object.IsStarted()
}

// session returns a session that has listed everything.
func (c *scene) session(r *Runner) *session {
	s := newSession(r, c.leads, c.watched, c.renewed)
	s.record = recording{saved: map[string]int{}, planned: c.planned, next: 1}
	s.watched, s.listed, s.defined.deleting = 1, 1, c.undefined
	s.freeze.parts[0].listed, s.freeze.parts[1].listed = true, true
	if c.frozen {
		ours := part{listed: true, present: true, uid: "f", appliedUID: "f", generation: 1, applied: 1}
		s.freeze.parts, s.freeze.denied = [2]part{ours, ours}, probes
	}
	claim := testClaim("data", false, nil)
	claim.Spec.VolumeName, claim.Status.Phase = "data", v1.ClaimBound
	s.inventory.Set(claim)
	for _, volume := range c.seen {
		s.inventory.Set(volume)
	}
	return s
}

// keptDisk is a volume with the policy Retain that the runner has to mark.
func keptDisk() *v1.PersistentVolume {
	kept := testVolume("kept", v1.VolumeBound)
	kept.Spec.PersistentVolumeReclaimPolicy = v1.PersistentVolumeReclaimRetain
	return kept
}

// unstarted is an Alive whose preparations are not done yet, longAgo one that a person permitted at the time.
func unstarted(a *alive.Alive) { a.Status.Conditions = nil }

func longAgo(ago time.Duration) func(*alive.Alive) {
	return func(a *alive.Alive) { a.Spec.ConfirmedAt = new(metav1.NewTime(time.Now().Add(-ago))) }
}

// guardScenes are scenes in which one guard alone stands against the deletion of the claim.
var guardScenes = map[string]struct {
	change          func(*scene)
	deletes, starts bool
}{
	"nothing stands against it": {func(*scene) {}, true, true},
	"an older word, the Lease fresh": {func(c *scene) {
		c.both(longAgo(20 * time.Minute))
	}, true, true},
	"not started yet": {func(c *scene) { c.both(unstarted) }, false, true},

	"another cluster": {func(c *scene) { c.system = "other" }, false, true},
	"protected since": {func(c *scene) { c.live.Spec.Protected = new(true) }, false, true},
	"replaced since":  {func(c *scene) { c.live.UID = "new" }, false, true},
	"gone since":      {func(c *scene) { c.live = nil }, false, false},
	"not deleted":     {func(c *scene) { c.both(func(a *alive.Alive) { a.DeletionTimestamp = nil }) }, false, true},
	"another ID":      {func(c *scene) { c.both(func(a *alive.Alive) { a.Spec.Confirm = "other" }) }, false, true},
	"the permission has ended": {func(c *scene) {
		c.both(longAgo(2 * time.Hour))
	}, false, true},
	"a volume to be marked, started": {func(c *scene) { c.seen = append(c.seen, keptDisk()) }, false, true},
	"a volume to be marked, not started": {func(c *scene) {
		c.both(unstarted)
		c.seen = append(c.seen, keptDisk())
	}, false, false},
	"no plan":   {func(c *scene) { c.planned = false }, false, true},
	"no freeze": {func(c *scene) { c.frozen = false }, false, true},
	"the volume is Retain by now": {func(c *scene) {
		c.disk.Spec.PersistentVolumeReclaimPolicy = v1.PersistentVolumeReclaimRetain
	}, false, true},
	"the volume has the label by now": {func(c *scene) {
		c.disk.Labels = map[string]string{alive.PreserveLabel: ""}
	}, false, true},
	"the volume is another claim's": {func(c *scene) { c.disk.Spec.ClaimRef.UID = "other" }, false, true},
	"the volume is static":          {func(c *scene) { c.disk.Annotations = nil }, false, true},
	"the volume is gone":            {func(c *scene) { c.disk = nil }, false, true},
	"restored from a backup": {func(c *scene) {
		c.both(longAgo(20 * time.Minute))
		c.renewed = time.Now().Add(-20 * time.Minute)
	}, false, true},
	"the Lease may end":        {func(c *scene) { c.leads = false }, false, true},
	"the CRD is being deleted": {func(c *scene) { c.undefined = true }, false, true},
}

// Each guard is alone: all others let the claim be deleted, as the first scene shows.
func TestEachGuardAloneKeepsTheDisk(t *testing.T) {
	for name, tc := range guardScenes {
		t.Run(name, func(t *testing.T) {
			c := newScene()
			tc.change(c)
			if deletes, starts := c.play(t); deletes != tc.deletes || starts != tc.starts {
				t.Errorf("deletes the claim: %t, want %t; Started: %t, want %t", deletes, tc.deletes, starts, tc.starts)
			}
		})
	}
}
