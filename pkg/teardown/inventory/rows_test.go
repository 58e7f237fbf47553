package inventory_test

import (
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/pkg/teardown/inventory"
)

// row is a row of the design: objects, and what follows.
type row struct {
	options inventory.Options
	objects []any
	items   []string
	steps   []string
	work    teardown.Work
}

func (r row) check(t *testing.T) {
	t.Helper()
	i := fill(r.options, r.objects...)
	if got := itemsOf(i, now); !slices.Equal(got, r.items) {
		t.Errorf("items %q, want %q", got, r.items)
	}
	if got := stepsOf(i, now); !slices.Equal(got, r.steps) {
		t.Errorf("steps %q, want %q", got, r.steps)
	}
	if got := i.Work(now); got != r.work {
		t.Errorf("work %v, want %v", got, r.work)
	}
}

func run(t *testing.T, rows map[string]row) {
	t.Helper()
	for name, r := range rows {
		t.Run(name, r.check)
	}
}

func preserved(c *v1.PersistentVolumeClaim) { c.Labels = map[string]string{preserve: "yes"} }

func static(v *v1.PersistentVolume) { delete(v.Annotations, "pv.kubernetes.io/provisioned-by") }

func phase(p v1.PersistentVolumePhase) edit[v1.PersistentVolume] {
	return func(v *v1.PersistentVolume) { v.Status.Phase = p }
}

func twin(v *v1.PersistentVolume) {
	v.Name, v.UID, v.Spec.ClaimRef, v.Status.Phase = "twin", "twin", nil, v1.VolumeAvailable
}

func TestRowsOfVolumes(t *testing.T) { run(t, rowsOfVolumes) }

var rowsOfVolumes = map[string]row{
	"01 pods go first": {objects: []any{disk("shop"), data("shop"), user("shop", "data")},
		items: []string{"disk delete PolicyDelete finalizer"}, steps: []string{"Delete Pod pod-of-data"}, work: teardown.Ready},
	"01 then the claim": {objects: []any{disk("shop"), data("shop")},
		items: []string{"disk delete PolicyDelete finalizer"}, steps: []string{"Delete PersistentVolumeClaim data"},
		work: teardown.Ready},
	"01 done when the volume is gone": {objects: []any{disk("shop", phase(v1.VolumeReleased))},
		items: []string{"disk delete Releasing finalizer"}, steps: []string{}, work: teardown.Awaited},
	"02 Retain is marked before pods go": {objects: []any{disk("shop", retain), data("shop"), user("shop", "data")},
		items: []string{"disk keep PolicyRetain finalizer"}, steps: []string{"Mark PersistentVolume disk"},
		work: teardown.Awaited},
	"02 Retain, pods stop": {objects: []any{disk("shop", marked), data("shop"), user("shop", "data")},
		items: []string{"disk keep Preserved finalizer"}, steps: []string{"Delete Pod pod-of-data"}, work: teardown.Ready},
	"02 Retain, attached": {objects: []any{disk("shop", marked), data("shop"), attached("disk")},
		items: []string{"disk keep Preserved finalizer"}, steps: []string{}, work: teardown.Awaited},
	"02 Retain, detached": {objects: []any{disk("shop", marked), data("shop")},
		items: []string{"disk keep Preserved finalizer"}, steps: []string{}, work: teardown.Quiet},
	"02 Recycle": {objects: []any{disk("shop", func(v *v1.PersistentVolume) { v.Spec.PersistentVolumeReclaimPolicy = "Recycle" })},
		items: []string{"disk keep PolicyRetain finalizer"}, steps: []string{"Mark PersistentVolume disk"}, work: teardown.Quiet},
	"03 static": {objects: []any{disk("shop", static), data("shop")},
		items: []string{"disk keep Static finalizer"}, steps: []string{"Mark PersistentVolume disk"}, work: teardown.Awaited},
	"04 label on the volume": {objects: []any{disk("shop", func(v *v1.PersistentVolume) {
		v.Labels = map[string]string{preserve: ""}
	}), data("shop")},
		items: []string{"disk keep Preserved finalizer"}, steps: []string{"Mark PersistentVolume disk"}, work: teardown.Awaited},
	"04 label on the claim": {objects: []any{disk("shop"), data("shop", preserved)},
		items: []string{"disk keep Preserved finalizer"}, steps: []string{"Mark PersistentVolume disk"}, work: teardown.Awaited},
	"04 label on the namespace": {objects: []any{disk("shop"), data("shop"),
		space("shop", func(n *v1.Namespace) { n.Labels = map[string]string{preserve: ""} })},
		items: []string{"disk keep Preserved finalizer"}, steps: []string{"Mark PersistentVolume disk"}, work: teardown.Awaited},
	"05 one handle twice": {objects: []any{disk("shop"), data("shop"), disk("shop", twin)},
		items: []string{"disk keep HandleShared finalizer", "twin keep HandleShared finalizer"},
		steps: []string{"Mark PersistentVolume disk", "Mark PersistentVolume twin"}, work: teardown.Awaited},
	"05 a handle of another cluster": {options: inventory.Options{Shared: map[string]bool{"ebs:vol-1": true}},
		objects: []any{disk("shop"), data("shop")}, items: []string{"disk keep HandleShared finalizer"},
		steps: []string{"Mark PersistentVolume disk"}, work: teardown.Awaited},
	"07 Delete again, the label keeps": {objects: []any{disk("shop", func(v *v1.PersistentVolume) {
		v.Labels = map[string]string{preserve: ""}
	})}, items: []string{"disk keep Preserved finalizer"}, steps: []string{"Mark PersistentVolume disk"}, work: teardown.Quiet},
	"11 failed": {objects: []any{disk("shop", phase(v1.VolumeFailed))},
		items: []string{"disk delete Releasing finalizer"}, steps: []string{}, work: teardown.Awaited},
	"11 available": {objects: []any{disk("shop", func(v *v1.PersistentVolume) {
		v.Spec.ClaimRef, v.Status.Phase = nil, v1.VolumeAvailable
	})}, items: []string{"disk keep Unbound finalizer"}, steps: []string{"Mark PersistentVolume disk"}, work: teardown.Quiet},
	"11 the claim is lost": {objects: []any{disk("shop"), data("shop", func(c *v1.PersistentVolumeClaim) {
		c.Status.Phase = v1.ClaimLost
	})}, items: []string{"disk keep Unbound finalizer"}, steps: []string{"Mark PersistentVolume disk"}, work: teardown.Awaited},
	"12 terminating, without the finalizer": {objects: []any{data("shop"), disk("shop", func(v *v1.PersistentVolume) {
		v.DeletionTimestamp, v.Finalizers = &metav1.Time{Time: now}, []string{"kubernetes.io/pv-protection"}
	})}, items: []string{"disk delete PolicyDelete none"}, steps: []string{"Delete PersistentVolumeClaim data"},
		work: teardown.Ready},
}

func TestUserWhoKeepsLateKeepsTheVolume(t *testing.T) { // 06
	i := fill(inventory.Options{}, disk("shop"), data("shop"))
	if got := i.Live(disk("shop")); got.Kept() {
		t.Errorf("%v keeps a volume that is to be deleted", got)
	}
	for name, change := range map[string]edit[v1.PersistentVolume]{"Retain": retain,
		"the label": func(v *v1.PersistentVolume) { v.Labels = map[string]string{preserve: ""} }} {
		if got := i.Live(disk("shop", change)); !got.Kept() {
			t.Errorf("%s: %v deletes the disk", name, got)
		}
	}
	i.Set(disk("shop", twin))
	if got := i.Live(disk("shop")); !got.Kept() {
		t.Errorf("a twin: %v deletes the disk", got)
	}
}

func TestKeptVolumeOnNodeIsNamed(t *testing.T) { // 09
	local := disk("shop", retain, func(v *v1.PersistentVolume) {
		v.Spec.PersistentVolumeSource = v1.PersistentVolumeSource{HostPath: &v1.HostPathVolumeSource{Path: "/data"}}
	})
	affine := disk("shop", static, func(v *v1.PersistentVolume) {
		v.Name = "affine"
		v.Spec.NodeAffinity = &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
			MatchExpressions: []v1.NodeSelectorRequirement{{Key: v1.LabelHostname, Operator: "In", Values: []string{"a"}}}}}}}
	})
	i := fill(inventory.Options{}, local, affine, disk("shop", named("cloud"), retain))
	if got, want := i.OnNodes(now), []string{"affine", "disk"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestRowsOfClaimsAndPods(t *testing.T) { run(t, rowsOfClaims) }

func ephemeral(c *v1.PersistentVolumeClaim) {
	c.Name = "pod-of-x-scratch"
	c.OwnerReferences = []metav1.OwnerReference{{Kind: "Pod", Name: "pod-of-x", UID: "pod-of-x", Controller: ptr.To(true)}}
}
func scratch(p *v1.Pod) {
	p.Spec.Volumes = []v1.Volume{{Name: "scratch", VolumeSource: v1.VolumeSource{Ephemeral: &v1.EphemeralVolumeSource{}}}}
}
func ofScratch(v *v1.PersistentVolume) { v.Spec.ClaimRef.Name = "pod-of-x-scratch" }

var rowsOfClaims = map[string]row{
	"14 ephemeral, goes with its pod": {objects: []any{disk("shop", ofScratch), data("shop", ephemeral), user("shop", "x", scratch)},
		items: []string{"disk delete PolicyDelete finalizer"}, steps: []string{"Delete Pod pod-of-x"}, work: teardown.Ready},
	"14 ephemeral and kept, marked first": {
		objects: []any{disk("shop", ofScratch, retain), data("shop", ephemeral), user("shop", "x", scratch)},
		items:   []string{"disk keep PolicyRetain finalizer"}, steps: []string{"Mark PersistentVolume disk"}, work: teardown.Awaited},
	"14 ephemeral and requested": {objects: []any{data("shop", requested, ephemeral), user("shop", "x", scratch)},
		items: []string{"pod-of-x-scratch delete GoesWithPod none"}, steps: []string{}, work: teardown.Awaited},
	"20 without a provisioner": {objects: []any{data("shop", pending)},
		items: []string{}, steps: []string{"Delete PersistentVolumeClaim data"}, work: teardown.Ready},
	"20 without a node": {objects: []any{data("shop", requested), class(storagev1.VolumeBindingWaitForFirstConsumer)},
		items: []string{}, steps: []string{"Delete PersistentVolumeClaim data"}, work: teardown.Ready},
	"21 requested": {objects: []any{data("shop", requested), class(storagev1.VolumeBindingImmediate)},
		items: []string{"data delete ProvisioningRequested none"}, steps: []string{}, work: teardown.Awaited},
	"21 a node is selected": {objects: []any{class(storagev1.VolumeBindingWaitForFirstConsumer),
		data("shop", requested, func(c *v1.PersistentVolumeClaim) { c.Annotations["volume.kubernetes.io/selected-node"] = "a" })},
		items: []string{"data delete ProvisioningRequested none"}, steps: []string{}, work: teardown.Awaited},
	"21 refused for good": {objects: []any{data("shop", requested),
		failed("rpc error: code = InvalidArgument desc = no", now)},
		items: []string{}, steps: []string{"Delete PersistentVolumeClaim data"}, work: teardown.Ready},
	"21 called again": {objects: []any{data("shop", requested), failed("rpc error: code = InvalidArgument desc = no", now),
		event("Provisioning", "", now.Add(time.Second))},
		items: []string{"data delete ProvisioningRequested none"}, steps: []string{}, work: teardown.Awaited},
	"21 refused after a call without an answer": {objects: []any{data("shop", requested),
		failed("rpc error: code = DeadlineExceeded desc = late", now.Add(-time.Minute)),
		failed("rpc error: code = ResourceExhausted desc = full", now)},
		items: []string{"data delete ProvisioningRequested none"}, steps: []string{}, work: teardown.Awaited},
	"21 full at the first call": {objects: []any{data("shop", requested),
		failed("rpc error: code = ResourceExhausted desc = full", now)},
		items: []string{}, steps: []string{"Delete PersistentVolumeClaim data"}, work: teardown.Ready},
	"21 a failure without a code": {objects: []any{data("shop", requested), failed("secret not found", now)},
		items: []string{"data delete ProvisioningRequested none"}, steps: []string{}, work: teardown.Awaited},
	"21 ours, no journal entry": {objects: []any{data("shop", requested), ledBy("pod_1_exeunt"), emptyJournal()},
		items: []string{}, steps: []string{"Delete PersistentVolumeClaim data"}, work: teardown.Ready},
	"22 deleted already": {objects: []any{disk("shop"), data("shop", func(c *v1.PersistentVolumeClaim) {
		c.DeletionTimestamp = &metav1.Time{Time: now}
	})}, items: []string{"disk delete PolicyDelete finalizer"}, steps: []string{}, work: teardown.Awaited},
	"22 the namespace is deleted": {objects: []any{disk("shop"), data("shop"), user("shop", "data"),
		space("shop", func(n *v1.Namespace) { n.DeletionTimestamp = &metav1.Time{Time: now} })},
		items: []string{"disk delete PolicyDelete finalizer"}, steps: []string{}, work: teardown.Awaited},
	"22 a mirror pod": {objects: []any{disk("shop"), data("shop"), user("shop", "data", func(p *v1.Pod) {
		p.Annotations = map[string]string{v1.MirrorPodAnnotationKey: "x"}
	})}, items: []string{"disk delete PolicyDelete finalizer"}, steps: []string{}, work: teardown.Awaited},
	"24 a pod is deleted, whatever a PDB says": {objects: []any{data("shop", pending), user("shop", "data")},
		items: []string{}, steps: []string{"Delete Pod pod-of-data"}, work: teardown.Ready},
}

// A volume may be there by now, with the label of a user, and its watch may be late.
func TestVolumeThatIsUnseenIsReadFirst(t *testing.T) { // 06, 21
	refused := failed("rpc error: code = InvalidArgument desc = no", now)
	for name, tc := range map[string]struct {
		objects []any
		at      time.Time
		unseen  []string
	}{
		"no answer":     {[]any{data("shop", requested)}, now.Add(2 * time.Minute), []string{"pvc-data"}},
		"refused":       {[]any{data("shop", requested), refused}, now, []string{"pvc-data"}},
		"unrequested":   {[]any{data("shop", pending)}, now, nil},
		"journaled":     {[]any{data("shop", requested), ledBy("pod_1_exeunt"), emptyJournal()}, now, []string{"pvc-data"}},
		"bound":         {[]any{data("shop"), disk("shop")}, now, nil},
		"ephemeral":     {[]any{data("shop", requested, ephemeral), refused, user("shop", "x", scratch)}, now, []string{"pvc-data"}},
		"bound by now":  {[]any{data("shop", ephemeral), user("shop", "x", scratch)}, now, []string{"disk"}},
		"pod of others": {[]any{data("shop", requested), refused, user("shop", "data")}, now, nil},
		"named":         {[]any{data("shop", func(c *v1.PersistentVolumeClaim) { c.Status.Phase = v1.ClaimPending })}, now, []string{"disk"}},
	} {
		t.Run(name, func(t *testing.T) {
			i := fill(inventory.Options{}, tc.objects...)
			i.Steps(now)
			steps := i.Steps(tc.at)
			if len(steps) != 1 || !slices.Equal(steps[0].Unseen, tc.unseen) {
				t.Errorf("%+v, want one with %q", steps, tc.unseen)
			}
		})
	}
}

// A driver of Spark owns the claims of its executors: the garbage collector deletes them after the driver.
func TestPodGoesAfterReadsForClaimsThatItOwns(t *testing.T) { // 06, 14, 21
	owned := func(controls bool) edit[v1.PersistentVolumeClaim] {
		return func(c *v1.PersistentVolumeClaim) {
			c.OwnerReferences = []metav1.OwnerReference{{Kind: "Pod", Name: "pod-of-x", UID: "pod-of-x", Controller: &controls}}
		}
	}
	run(t, map[string]row{
		"requested": {objects: []any{data("shop", requested, owned(true)), user("shop", "x")},
			items: []string{"data delete GoesWithPod none"}, steps: []string{}, work: teardown.Awaited},
		"kept, marked first": {objects: []any{data("shop", owned(true)), disk("shop", retain), user("shop", "x")},
			items: []string{"disk keep PolicyRetain finalizer"}, steps: []string{"Mark PersistentVolume disk"}, work: teardown.Awaited},
	})
	for _, controls := range []bool{true, false} {
		i := fill(inventory.Options{}, disk("shop"), data("shop", owned(controls)), user("shop", "x"))
		steps := i.Steps(now)
		if len(steps) != 1 || steps[0].Kind != "Pod" || !slices.Equal(steps[0].Volumes, []string{"disk"}) {
			t.Errorf("controller %t: %+v, want the pod, after a read of disk", controls, steps)
		}
	}
}

func TestAnswerIsAwaitedForTwoMinutes(t *testing.T) { // 21
	i := fill(inventory.Options{}, data("shop", requested))
	if got := stepsOf(i, now); len(got) != 0 {
		t.Fatalf("steps at once: %q", got)
	}
	due := now.Add(2 * time.Minute)
	if got := i.NextTime(now); !got.Equal(due) {
		t.Errorf("next time %v, want %v", got, due)
	}
	if got, want := stepsOf(i, due), []string{"Delete PersistentVolumeClaim data"}; !slices.Equal(got, want) {
		t.Fatalf("steps %q, want %q", got, want)
	}
	i.Remove(data("shop", requested))
	if got, want := itemsOf(i, due), []string{"data delete OutcomeUnknown none"}; !slices.Equal(got, want) {
		t.Errorf("items %q, want %q", got, want)
	}
	if got := i.Items(due)[0]; got.Fate != teardown.Unknown || got.ExternalID != "pvc-data" {
		t.Errorf("%+v does not name the disk as unknown", got)
	}
	if got := i.Work(due); got != teardown.Awaited {
		t.Errorf("work %v although a disk may exist", got)
	}
	again := fill(inventory.Options{})
	again.Restore(i.Items(due))
	if got := again.Work(due); got != teardown.Awaited {
		t.Errorf("work %v after a restart, although a disk may exist", got)
	}
	i.Set(disk("shop", phase(v1.VolumeReleased)))
	if got, want := itemsOf(i, due), []string{"disk delete Releasing finalizer"}; !slices.Equal(got, want) {
		t.Errorf("late volume: items %q, want %q", got, want)
	}
}

func TestLateVolumeIsJudgedAsOthers(t *testing.T) { // 10
	i := fill(inventory.Options{}, data("shop", requested))
	i.Set(disk("shop", retain))
	i.Set(data("shop"))
	if got := i.Unmarked(now); got != 1 {
		t.Errorf("%d unmarked, want the late volume", got)
	}
	i.Set(disk("shop", marked))
	if got := i.Unmarked(now); got != 0 {
		t.Errorf("%d unmarked after the mark", got)
	}
}

func TestRowsOfLoadBalancers(t *testing.T) {
	other := func(s *v1.Service) { s.Spec.Type = v1.ServiceTypeClusterIP }
	bare := func(s *v1.Service) { s.Finalizers = nil }
	run(t, map[string]row{
		"30 finalizer": {objects: []any{service()}, items: []string{"web delete ServesBalancer finalizer"},
			steps: []string{"Delete Service web"}, work: teardown.Ready},
		"30 deleted": {objects: []any{service(func(s *v1.Service) { s.DeletionTimestamp = &metav1.Time{Time: now} })},
			items: []string{"web delete Terminating finalizer"}, steps: []string{}, work: teardown.Awaited},
		"31 nothing external": {objects: []any{service(bare, func(s *v1.Service) { s.Status = v1.ServiceStatus{} })},
			items: []string{"web delete ServesBalancer finalizer"}, steps: []string{"Delete Service web"}, work: teardown.Ready},
		"31 address without a finalizer": {objects: []any{service(bare)}, items: []string{"web delete ServesBalancer none"},
			steps: []string{"Delete Service web"}, work: teardown.Ready},
		"32 type changed away": {objects: []any{service(other)}, items: []string{"web delete TypeChanged finalizer"},
			steps: []string{}, work: teardown.Awaited},
		"32 another finalizer on a ClusterIP": {objects: []any{service(other, func(s *v1.Service) {
			s.Finalizers = []string{"example.com/audit"}
		})}, items: []string{}, steps: []string{}, work: teardown.Quiet},
		"32 preserved": {objects: []any{service(func(s *v1.Service) { s.Labels = map[string]string{preserve: ""} })},
			items: []string{"web keep Preserved finalizer"}, steps: []string{}, work: teardown.Quiet},
		"32 routes without a finalizer": {objects: []any{ingress(), gateway()},
			items: []string{"route keep NoFinalizer finalizer", "gate keep NoFinalizer finalizer"}, steps: []string{},
			work: teardown.Quiet},
		"30 routes with a finalizer": {objects: []any{ingress("ingress.k8s.aws/resources"), gateway("gateway.k8s.aws/alb")},
			items: []string{"route delete ServesBalancer finalizer", "gate delete ServesBalancer finalizer"},
			steps: []string{"Delete Gateway gate", "Delete Ingress route"}, work: teardown.Ready},
		"33 our API server": {options: inventory.Options{APIServer: map[string]bool{"192.0.2.1": true}}, objects: []any{service()},
			items: []string{"web keep LeadsToAPI finalizer"}, steps: []string{}, work: teardown.Quiet},
	})
}

func TestRowsOfSnapshots(t *testing.T) {
	group := func(u *unstructured.Unstructured) {
		u.Object["status"].(map[string]any)["volumeGroupSnapshotName"] = "g"
	}
	label := func(u *unstructured.Unstructured) { u.SetLabels(map[string]string{preserve: ""}) }
	made := func(u *unstructured.Unstructured) {
		u.Object["spec"].(map[string]any)["source"] = map[string]any{"snapshotHandle": "snap-1"}
	}
	run(t, map[string]row{
		"34 Delete": {objects: []any{snapshot(), contentWith("Delete")}, items: []string{"snap delete PolicyDelete none"},
			steps: []string{"Delete VolumeSnapshot snap"}, work: teardown.Ready},
		"34 content awaited": {objects: []any{contentWith("Delete")}, items: []string{"content delete Terminating none"},
			steps: []string{}, work: teardown.Awaited},
		"34 Retain": {objects: []any{snapshot(), contentWith("Retain")}, items: []string{"snap keep PolicyRetain none"},
			steps: []string{}, work: teardown.Quiet},
		"34 label on the snapshot": {objects: []any{snapshot(label), contentWith("Delete")},
			items: []string{"snap keep Preserved none"}, steps: []string{}, work: teardown.Quiet},
		"34 label on the content": {objects: []any{snapshot(), contentWith("Delete", label)},
			items: []string{"snap keep PolicyRetain none"}, steps: []string{}, work: teardown.Quiet},
		"34 made by an administrator": {objects: []any{snapshot(), contentWith("Delete", made)},
			items: []string{"snap keep PolicyRetain none"}, steps: []string{}, work: teardown.Quiet},
		"34 of a group": {objects: []any{snapshot(group), contentWith("Delete")}, items: []string{"snap keep GroupMember none"},
			steps: []string{}, work: teardown.Quiet},
		"34 content not seen": {objects: []any{snapshot()}, items: []string{"snap delete ContentUnreadable none"},
			steps: []string{}, work: teardown.Awaited},
	})
}

func TestVolumesAreNamedForTheLiveRead(t *testing.T) {
	i := fill(inventory.Options{}, disk("shop"), data("shop"))
	if got, want := i.Steps(now)[0].Volumes, []string{"disk"}; !slices.Equal(got, want) {
		t.Errorf("claim: %q, want %q", got, want)
	}
	i = fill(inventory.Options{}, disk("shop", ofScratch), data("shop", ephemeral), user("shop", "x", scratch))
	if got, want := i.Steps(now)[0].Volumes, []string{"disk"}; !slices.Equal(got, want) {
		t.Errorf("pod with an ephemeral claim: %q, want %q", got, want)
	}
}

func TestClaimThatAnotherDeletesIsUnknown(t *testing.T) { // 21
	i := fill(inventory.Options{}, data("shop", requested))
	i.Remove(data("shop", requested))
	if got := i.Items(now); len(got) != 1 || got[0].Fate != teardown.Unknown || i.Work(now) != teardown.Awaited {
		t.Errorf("%+v, work %v: the disk may exist", got, i.Work(now))
	}
	for name, objects := range map[string][]any{"recorded": {data("shop", requested), disk("shop", retain, marked)},
		"refused":     {data("shop", requested), failed("rpc error: code = OutOfRange desc = no", now)},
		"unrequested": {data("shop", pending)}} {
		i := fill(inventory.Options{}, objects...)
		i.Remove(objects[0])
		if got := i.Work(now); got != teardown.Quiet {
			t.Errorf("%s: work %v", name, got)
		}
	}
}
