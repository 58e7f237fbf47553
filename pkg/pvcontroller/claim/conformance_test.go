package claim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/migration"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/intree"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/metrics"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// told keeps the events that were sent: object, type and reason.
type told struct{ events []string }

func (r *told) Event(object runtime.Object, kind, reason, _ string) {
	r.events = append(r.events, fmt.Sprintf("%T %s: %s %s", object, object.(metav1.Object).GetName(), kind, reason))
}

func (r *told) Eventf(object runtime.Object, kind, reason, format string, args ...any) {
	r.Event(object, kind, reason, fmt.Sprintf(format, args...))
}

func (r *told) AnnotatedEventf(object runtime.Object, _ map[string]string, kind, reason, format string, args ...any) {
	r.Event(object, kind, reason, fmt.Sprintf(format, args...))
}

// handedOver records the claims that are handed to the in-tree provisioner.
type handedOver []string

func (h *handedOver) Enqueue(claim string) { *h = append(*h, claim) }

// stage is a controller whose caches know exactly the objects that its API server has.
func stage(t *testing.T, objects ...runtime.Object) (*Controller, *told) {
	t.Helper()
	client := fake.NewSimpleClientset(objects...)
	caches, err := controller.NewCaches(informers.NewSharedInformerFactory(client, 0))
	if err != nil {
		t.Fatal(err)
	}
	events := &told{}
	plugins := intree.NewSet(migration.New(), &intree.HostPath{Root: t.TempDir(), Provisions: true})
	c, err := New(Config{
		Client: client, Caches: caches, Versions: controller.NewVersions(), Reporter: controller.NewReporter(events),
		Observer: &Observer{Caches: caches, Provisioners: plugins, Dynamic: true}, InTree: &handedOver{}, Operations: metrics.NewOperations(),
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		var informer cache.SharedIndexInformer
		switch object := object.(type) {
		case *v1.PersistentVolumeClaim:
			informer = caches.Claims
		case *v1.PersistentVolume:
			informer = caches.Volumes
			c.index.Update(object)
		case *storagev1.StorageClass:
			informer = caches.Classes
		case *v1.Pod:
			informer = caches.Pods
		}
		if err := informer.GetStore().Add(object); err != nil {
			t.Fatal(err)
		}
	}
	return c, events
}

// reconcile looks at the claim once, and lets the caches follow what was written.
func reconcile(t *testing.T, c *Controller) *v1.PersistentVolumeClaim {
	t.Helper()
	ctx := context.Background()
	if err := c.Reconcile(ctx, "ns/claim"); err != nil {
		t.Fatal(err)
	}
	claim, err := c.Client.CoreV1().PersistentVolumeClaims("ns").Get(ctx, "claim", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	volumes, err := c.Client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	errs := []error{c.Caches.Claims.GetStore().Update(claim)}
	for i := range volumes.Items {
		errs = append(errs, c.Caches.Volumes.GetStore().Update(&volumes.Items[i]))
	}
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return claim
}

// pendingClaim is a claim that the API server has just taken in.
func pendingClaim(change ...func(*v1.PersistentVolumeClaim)) *v1.PersistentVolumeClaim {
	claim := claimant()
	claim.ResourceVersion = "1"
	claim.Annotations = map[string]string{"example.com/any": "thing"}
	claim.Status.Phase = v1.ClaimPending
	for _, f := range change {
		f(claim)
	}
	return claim
}

func ofClass(name string) func(*v1.PersistentVolumeClaim) {
	return func(c *v1.PersistentVolumeClaim) { c.Spec.StorageClassName = &name }
}

func naming(volume string) func(*v1.PersistentVolumeClaim) {
	return func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeName = volume }
}

func annotated(annotations ...string) func(*v1.PersistentVolumeClaim) {
	return func(c *v1.PersistentVolumeClaim) {
		for i := 0; i < len(annotations); i += 2 {
			c.Annotations[annotations[i]] = annotations[i+1]
		}
	}
}

// boundOnce is a claim that was bound, and shows it.
func boundOnce(c *v1.PersistentVolumeClaim) {
	annotated(storage.AnnBindCompleted, "yes")(c)
	c.Status = v1.PersistentVolumeClaimStatus{Phase: v1.ClaimBound, AccessModes: c.Spec.AccessModes, Capacity: c.Spec.Resources.Requests}
}

func referringTo(name, uid string) func(*v1.PersistentVolume) {
	return func(volume *v1.PersistentVolume) {
		volume.Spec.ClaimRef = &v1.ObjectReference{Namespace: "ns", Name: name, UID: types.UID(uid)}
	}
}

func inClass(name string) func(*v1.PersistentVolume) {
	return func(volume *v1.PersistentVolume) { volume.Spec.StorageClassName = name }
}

func class(provisioner string, mode storagev1.VolumeBindingMode) *storagev1.StorageClass {
	return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "class"}, Provisioner: provisioner, VolumeBindingMode: &mode}
}

func pod(node string, phase v1.PodPhase) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod"},
		Spec: v1.PodSpec{NodeName: node, Volumes: []v1.Volume{{VolumeSource: v1.VolumeSource{
			PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "claim"},
		}}}},
		Status: v1.PodStatus{Phase: phase},
	}
}

// Each case tells one reason by what alone makes it so; what is told beside it, or
// of another object, fails it.
func TestEveryReasonIsToldOfTheClaimConcernedAndNoOther(t *testing.T) {
	const immediate, wait = storagev1.VolumeBindingImmediate, storagev1.VolumeBindingWaitForFirstConsumer
	for name, tc := range map[string]struct {
		claim  *v1.PersistentVolumeClaim
		others []runtime.Object
		want   string // type and reason, "" for silence
	}{
		"nothing fits, and no class is set":   {pendingClaim(), nil, "Normal FailedBinding"},
		"nothing fits, and the class is none": {pendingClaim(ofClass("")), nil, "Normal FailedBinding"},
		"the volume that it names is another's": {
			pendingClaim(naming("v")), []runtime.Object{free("v", "1", referringTo("other", "other"))}, "Warning FailedBinding"},
		"the volume that it names does not fit": {
			pendingClaim(naming("v")), []runtime.Object{free("v", "1", inClass("other"))}, "Warning VolumeMismatch"},
		"the volume that it names is not there yet": {pendingClaim(naming("v")), nil, ""},
		"the volume fits":               {pendingClaim(), []runtime.Object{free("v", "1")}, ""},
		"bound, and the volume is gone": {pendingClaim(naming("v"), boundOnce), nil, "Warning ClaimLost"},
		"bound, and it names no volume": {pendingClaim(boundOnce), nil, "Warning ClaimLost"},
		"bound, and the volume is another's": {
			pendingClaim(naming("v"), boundOnce), []runtime.Object{free("v", "1", referringTo("other", "other"))}, "Warning ClaimMisbound"},
		"bound, and the volume is of a claim of its name before": {
			pendingClaim(naming("v"), boundOnce), []runtime.Object{free("v", "1", referringTo("claim", "former"))}, "Warning ClaimMisbound"},
		"bound": {
			pendingClaim(naming("v"), boundOnce), []runtime.Object{free("v", "1", referringTo("claim", "claim"))}, ""},
		"nobody uses it yet": {
			pendingClaim(ofClass("class")), []runtime.Object{class("example.com/driver", wait)}, "Normal WaitForFirstConsumer"},
		"its pod is not scheduled": {
			pendingClaim(ofClass("class")), []runtime.Object{class("example.com/driver", wait), pod("", v1.PodPending)}, "Normal WaitForPodScheduled"},
		"its pod is scheduled, and no node selected": {
			pendingClaim(ofClass("class")), []runtime.Object{class("example.com/driver", wait), pod("node", v1.PodPending)}, "Normal WaitForFirstConsumer"},
		"its pod has failed without being scheduled": {
			pendingClaim(ofClass("class")), []runtime.Object{class("example.com/driver", wait), pod("", v1.PodFailed)}, "Normal WaitForFirstConsumer"},
		"its node is selected": {
			pendingClaim(ofClass("class"), annotated(storage.AnnSelectedNode, "node")),
			[]runtime.Object{class("example.com/driver", wait)}, "Normal ExternalProvisioning"},
		"an external provisioner is asked": {
			pendingClaim(ofClass("class")), []runtime.Object{class("example.com/driver", immediate)}, "Normal ExternalProvisioning"},
		"a migrated plugin's driver is asked": {
			pendingClaim(ofClass("class")), []runtime.Object{class("kubernetes.io/gce-pd", immediate)}, "Normal ExternalProvisioning"},
		"a plugin here is asked, and has said nothing yet": {
			pendingClaim(ofClass("class")), []runtime.Object{class("kubernetes.io/host-path", immediate)}, ""},
		"the class does not exist": {pendingClaim(ofClass("class")), nil, "Warning ProvisioningFailed"},
		"nobody can provision": {
			pendingClaim(ofClass("class")), []runtime.Object{class("kubernetes.io/no-provisioner", immediate)}, "Warning ProvisioningFailed"},
		"it is being deleted": {
			pendingClaim(func(c *v1.PersistentVolumeClaim) { c.DeletionTimestamp = &metav1.Time{} }), nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			bystander := pendingClaim()
			bystander.Name, bystander.UID = "bystander", "bystander"
			c, events := stage(t, append(tc.others, tc.claim, bystander)...)
			for range 2 { // and it is told once
				reconcile(t, c)
			}
			var want []string
			if tc.want != "" {
				want = append(want, "*v1.PersistentVolumeClaim claim: "+tc.want)
			}
			if !slices.Equal(events.events, want) {
				t.Errorf("told %q, want %q", events.events, want)
			}
		})
	}
}

// A case is one transition: the phase before stands in the claim, the one after is
// read from the API server.
func TestEveryPhaseOfAClaimIsReachedForItsReasonOnly(t *testing.T) {
	lostBefore := func(c *v1.PersistentVolumeClaim) {
		boundOnce(c)
		c.Status = v1.PersistentVolumeClaimStatus{Phase: v1.ClaimLost}
	}
	for name, tc := range map[string]struct {
		claim   *v1.PersistentVolumeClaim
		volumes []runtime.Object
		want    v1.PersistentVolumeClaimPhase
	}{
		"new, and nothing fits":       {pendingClaim(func(c *v1.PersistentVolumeClaim) { c.Status.Phase = "" }), nil, v1.ClaimPending},
		"pending, and nothing fits":   {pendingClaim(), nil, v1.ClaimPending},
		"pending, and a volume fits":  {pendingClaim(), []runtime.Object{free("v", "1")}, v1.ClaimBound},
		"pending, and one was chosen": {pendingClaim(naming("v")), []runtime.Object{free("v", "1")}, v1.ClaimBound},
		"pending, and one chose it":   {pendingClaim(), []runtime.Object{free("v", "1", referringTo("claim", ""))}, v1.ClaimBound},
		"pending, and the one chosen is another's": {
			pendingClaim(naming("v")), []runtime.Object{free("v", "1", referringTo("other", ""))}, v1.ClaimPending},
		"pending, but it was bound once":     {pendingClaim(annotated(storage.AnnBindCompleted, "yes")), nil, v1.ClaimLost},
		"bound, and all is well":             {pendingClaim(naming("v"), boundOnce), []runtime.Object{free("v", "1", referringTo("claim", "claim"))}, v1.ClaimBound},
		"bound, and the reference is gone":   {pendingClaim(naming("v"), boundOnce), []runtime.Object{free("v", "1")}, v1.ClaimBound},
		"bound, and the volume is gone":      {pendingClaim(naming("v"), boundOnce), nil, v1.ClaimLost},
		"bound, and the volume is another's": {pendingClaim(naming("v"), boundOnce), []runtime.Object{free("v", "1", referringTo("other", ""))}, v1.ClaimLost},
		"bound, and it names none":           {pendingClaim(boundOnce), nil, v1.ClaimLost},
		"lost, and it stays so":              {pendingClaim(naming("v"), lostBefore), nil, v1.ClaimLost},
		"lost, and the volume is back":       {pendingClaim(naming("v"), lostBefore), []runtime.Object{free("v", "1", referringTo("claim", "claim"))}, v1.ClaimBound},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := stage(t, append(tc.volumes, tc.claim)...)
			claim := reconcile(t, c)
			if claim.Status.Phase != tc.want {
				t.Errorf("the claim is %s, want %s", claim.Status.Phase, tc.want)
			}
			shown := claim.Status.Capacity != nil && claim.Status.AccessModes != nil
			if bound := tc.want == v1.ClaimBound; shown != bound {
				t.Errorf("capacity and access modes are shown: %v, want %v", shown, bound)
			}
			for _, object := range tc.volumes {
				name := object.(*v1.PersistentVolume).Name
				if volume := c.Caches.Volume(name); (volume.Status.Phase == v1.VolumeBound) != (tc.want == v1.ClaimBound) {
					t.Errorf("the volume is %s, the claim %s", volume.Status.Phase, tc.want)
				}
			}
		})
	}
}
