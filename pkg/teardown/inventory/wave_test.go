package inventory_test

import (
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/pkg/teardown/inventory"
)

// storage returns Ceph on cloud disks, whose database lies on Ceph (#26), and a shop on Ceph.
func storage() []any {
	return []any{
		csi("kube-system", "ebs"), csi("ceph", "ceph.rbd"),
		disk("ceph", named("osd")), data("ceph", boundTo("osd")), user("ceph", "of-osd"),
		disk("ceph", named("db"), of("ceph.rbd")), data("ceph", boundTo("db")), user("ceph", "of-db"),
		disk("shop", of("ceph.rbd")), data("shop"),
	}
}

func TestStorageGoesInWaves(t *testing.T) { // 25, 26
	i := fill(inventory.Options{}, storage()...)
	expect := func(want []string, unopened []string) {
		t.Helper()
		if got := stepsOf(i, now); !slices.Equal(got, want) {
			t.Errorf("steps %q, want %q", got, want)
		}
		if got := i.Unopened(now); !slices.Equal(got, unopened) {
			t.Errorf("unopened %q, want %q", got, unopened)
		}
	}
	expect([]string{"Delete PersistentVolumeClaim data"}, []string{"ceph"})
	i.Remove(data("shop"))
	i.Set(disk("shop", of("ceph.rbd"), phase(v1.VolumeReleased)))
	expect([]string{}, []string{"ceph"})
	i.Remove(disk("shop"))
	expect([]string{"Delete Pod pod-of-of-db"}, []string{"ceph"})
	i.Remove(user("ceph", "of-db"))
	expect([]string{"Delete PersistentVolumeClaim of-db"}, []string{"ceph"})
	i.Remove(data("ceph", boundTo("db")))
	i.Remove(disk("ceph", named("db")))
	expect([]string{"Delete Pod pod-of-of-osd"}, nil)
	i.Remove(user("ceph", "of-osd"))
	i.Remove(csi("ceph", "ceph.rbd"))
	expect([]string{"Delete PersistentVolumeClaim of-osd"}, nil)
}

func TestStuckVolumeOpensTheNextWave(t *testing.T) { // 13
	i := fill(inventory.Options{}, storage()...)
	i.Remove(data("shop"))
	i.Set(disk("shop", of("ceph.rbd"), phase(v1.VolumeReleased)))
	i.SetStuck(map[types.UID]bool{"disk": true})
	if got, want := stepsOf(i, now), []string{"Delete Pod pod-of-of-db"}; !slices.Equal(got, want) {
		t.Errorf("steps %q, want %q", got, want)
	}
	if got := i.Work(now); got != teardown.Ready {
		t.Errorf("work %v, want Ready", got)
	}
}

func TestKeptVolumeIsDetachedBeforeItsDriverGoes(t *testing.T) { // 02, 08
	i := fill(inventory.Options{}, disk("shop", marked), data("shop"), attached("disk"), csi("ceph", "ebs"),
		disk("ceph", named("osd"), marked), data("ceph", boundTo("osd")), user("ceph", "of-osd"))
	if got := stepsOf(i, now); len(got) != 0 {
		t.Errorf("steps %q while the kept volume is attached", got)
	}
	i.Remove(attached("disk"))
	if got, want := stepsOf(i, now), []string{"Delete Pod pod-of-of-osd"}; !slices.Equal(got, want) {
		t.Errorf("steps %q, want %q", got, want)
	}
}

func TestKeptVolumeInUseIsAwaitedByName(t *testing.T) { // 02, 23
	deleted := func(p *v1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: now} }
	deletedClaim := func(c *v1.PersistentVolumeClaim) { c.DeletionTimestamp = &metav1.Time{Time: now} }
	again := func(c *v1.PersistentVolumeClaim) { c.UID = "again" }
	for name, tc := range map[string]struct {
		objects []any
		want    bool
	}{
		"a pod that does not go":     {[]any{data("shop"), user("shop", "data", deleted)}, true},
		"attached":                   {[]any{data("shop"), attached("disk")}, true},
		"a deleted claim":            {[]any{data("shop", deletedClaim)}, true},
		"detached":                   {[]any{data("shop")}, false},
		"a pod of another claim":     {[]any{data("shop"), user("shop", "other", deleted)}, false},
		"another volume is attached": {[]any{data("shop"), attached("other")}, false},
		"a claim made again":         {[]any{data("shop", deletedClaim, again)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			i := fill(inventory.Options{}, append(tc.objects, disk("shop", marked))...)
			if item := i.Items(now)[0]; item.InUse != tc.want || item.Awaited() != tc.want || item.Fate != teardown.Kept {
				t.Errorf("%+v, want in use %v", item, tc.want)
			}
		})
	}
}

func TestStuckPodOfKeptVolumeOpensTheNextWave(t *testing.T) { // 13, 22
	i := fill(inventory.Options{}, disk("shop", marked), data("shop"), attached("disk"),
		user("shop", "data", func(p *v1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: now} }),
		disk("kube-system", named("low")), data("kube-system", boundTo("low")))
	if got := stepsOf(i, now); len(got) != 0 {
		t.Errorf("steps %q while the pod goes", got)
	}
	i.SetStuck(map[types.UID]bool{"disk": true, "pod-of-data": true})
	if got, want := stepsOf(i, now), []string{"Delete PersistentVolumeClaim of-low"}; !slices.Equal(got, want) {
		t.Errorf("steps %q, want %q", got, want)
	}
}

func TestAttachmentWithoutVolumeIsNotAwaited(t *testing.T) { // 23
	i := fill(inventory.Options{}, attached("disk"))
	if got := i.Work(now); got != teardown.Quiet {
		t.Errorf("work %v, want Quiet: no volume is kept", got)
	}
	i.Set(disk("shop", marked))
	if got := i.Work(now); got != teardown.Awaited {
		t.Errorf("work %v, want Awaited: the kept volume is attached", got)
	}
}

func TestSnapshotGoesBeforeTheStorageBelow(t *testing.T) {
	i := fill(inventory.Options{}, storage()[:8]...)
	i.Set(contentWith("Delete"))
	if got := stepsOf(i, now); len(got) != 0 {
		t.Errorf("steps %q while a snapshot is being deleted", got)
	}
	i.SetStuck(map[types.UID]bool{"content": true})
	if got, want := stepsOf(i, now), []string{"Delete Pod pod-of-of-db"}; !slices.Equal(got, want) {
		t.Errorf("steps %q, want %q", got, want)
	}
}

func TestPodOfTwoWavesGoesInTheLater(t *testing.T) {
	both := user("ceph", "of-osd", func(p *v1.Pod) {
		more := p.Spec.Volumes[0]
		more.PersistentVolumeClaim = &v1.PersistentVolumeClaimVolumeSource{ClaimName: "of-db"}
		p.Spec.Volumes = append(p.Spec.Volumes, more)
	})
	i := fill(inventory.Options{}, storage()[:8]...)
	i.Remove(user("ceph", "of-db"))
	i.Set(both)
	if got, want := stepsOf(i, now), []string{"Delete Pod pod-of-of-osd"}; !slices.Equal(got, want) {
		t.Errorf("steps %q, want %q", got, want)
	}
}

func TestNamespaceOfParticipantWaitsForIt(t *testing.T) { // 55
	i := fill(inventory.Options{}, disk("shop"), data("shop"), disk("buckets", named("state")), data("buckets", boundTo("state")))
	operator := inventory.Participant{Finalizer: "example.com/buckets", Namespace: "buckets", Text: "buckets"}
	i.SetParticipants([]inventory.Participant{operator})
	if got, want := stepsOf(i, now), []string{"Delete PersistentVolumeClaim data"}; !slices.Equal(got, want) {
		t.Errorf("steps %q, want %q", got, want)
	}
	i.Remove(data("shop"))
	i.Remove(disk("shop"))
	if got := stepsOf(i, now); len(got) != 0 || i.Work(now) != teardown.Awaited {
		t.Errorf("steps %q, work %v while the participant works", got, i.Work(now))
	}
	operator.Stuck = true
	i.SetParticipants([]inventory.Participant{operator})
	if got := stepsOf(i, now); len(got) != 0 {
		t.Errorf("steps %q in the namespace of a stuck participant", got)
	}
	i.SetParticipants(nil)
	if got, want := stepsOf(i, now), []string{"Delete PersistentVolumeClaim of-state"}; !slices.Equal(got, want) {
		t.Errorf("steps %q, want %q", got, want)
	}
}

func TestNamedNamespacesGoLast(t *testing.T) {
	for name, tc := range map[string]struct {
		options inventory.Options
		object  any
	}{
		"kube-system":   {object: space("x")},
		"exeunt-system": {object: space("x")},
		"nfs":           {options: inventory.Options{Last: []string{"nfs"}}, object: space("x")},
		"csi":           {object: csi("csi", "other")},
		"sidecar":       {object: lease("sidecar", "external-attacher-leader-ebs", "pod")},
		"served": {object: func() any {
			u := custom("apiregistration.k8s.io/v1", "APIService", "", "v1.x")
			u.Object["spec"] = map[string]any{"service": map[string]any{"namespace": "served"}}
			return u
		}()},
	} {
		t.Run(name, func(t *testing.T) {
			i := fill(tc.options, disk("shop"), data("shop"), disk(name, named("low")), data(name, boundTo("low")), tc.object)
			if got, want := stepsOf(i, now), []string{"Delete PersistentVolumeClaim data"}; !slices.Equal(got, want) {
				t.Errorf("steps %q, want %q", got, want)
			}
		})
	}
}
