package claim

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/migration"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/intree"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/metrics"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/pvcache"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// recorder keeps the events that were sent: object, type and reason.
type recorder struct {
	mu     sync.Mutex
	events []string
}

// sent returns the events so far.
func (r *recorder) sent() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

func (r *recorder) Event(object runtime.Object, kind, reason, _ string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, fmt.Sprintf("%T %s: %s %s", object, object.(metav1.Object).GetName(), kind, reason))
}

func (r *recorder) Eventf(object runtime.Object, kind, reason, format string, args ...any) {
	r.Event(object, kind, reason, fmt.Sprintf(format, args...))
}

func (r *recorder) AnnotatedEventf(object runtime.Object, _ map[string]string, kind, reason, format string,
	args ...any) {
	r.Event(object, kind, reason, fmt.Sprintf(format, args...))
}

// handedOver records the claims that are handed to the in-tree provisioner.
type handedOver []string

func (h *handedOver) Enqueue(claim string) { *h = append(*h, claim) }

// newController returns a controller whose caches contain the objects of its API server,
// which existed when the controller started.
func newController(t testing.TB, objects ...runtime.Object) (*Controller, *recorder) {
	t.Helper()
	client := fake.NewSimpleClientset(objects...)
	caches, err := pvcache.New(informers.NewSharedInformerFactory(client, 0))
	if err != nil {
		t.Fatal(err)
	}
	events := &recorder{}
	plugins := intree.NewSet(migration.New(), &intree.HostPath{Root: t.TempDir(), Provisions: true})
	c := New(Config{
		Client: client, Caches: caches, Versions: controller.NewVersions(), Reporter: controller.NewReporter(events),
		Observer: &Observer{Caches: caches, Provisioners: plugins, Dynamic: true}, InTree: &handedOver{},
		Operations: metrics.NewOperations(),
	})
	c.started = time.Now()
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

// reconcile reconciles the claim once and updates the caches.
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

// pendingClaim returns a new claim.
func pendingClaim(change ...func(*v1.PersistentVolumeClaim)) *v1.PersistentVolumeClaim {
	claim := newClaim()
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

// boundOnce makes the claim Bound.
func boundOnce(c *v1.PersistentVolumeClaim) {
	annotated(storage.AnnBindCompleted, "yes")(c)
	c.Status = v1.PersistentVolumeClaimStatus{Phase: v1.ClaimBound, AccessModes: c.Spec.AccessModes,
		Capacity: c.Spec.Resources.Requests}
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
	return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "class"}, Provisioner: provisioner,
		VolumeBindingMode: &mode}
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

const immediate, wait = storagev1.VolumeBindingImmediate, storagev1.VolumeBindingWaitForFirstConsumer

var reasonCases = map[string]struct {
	claim  *v1.PersistentVolumeClaim
	others []runtime.Object
	want   string // type and reason, "" for no event
}{
	"no volume fits, no class":    {pendingClaim(), nil, "Normal FailedBinding"},
	"no volume fits, empty class": {pendingClaim(ofClass("")), nil, "Normal FailedBinding"},
	"named volume of another claim": {
		pendingClaim(naming("v")), []runtime.Object{free("v", "1", referringTo("other", "other"))}, "Warning FailedBinding"},
	"named volume does not fit": {
		pendingClaim(naming("v")), []runtime.Object{free("v", "1", inClass("other"))}, "Warning VolumeMismatch"},
	"named volume does not exist": {pendingClaim(naming("v")), nil, "Normal FailedBinding"},
	"volume fits":                 {pendingClaim(), []runtime.Object{free("v", "1")}, ""},
	"bound, volume gone":          {pendingClaim(naming("v"), boundOnce), nil, "Warning ClaimLost"},
	"bound, names no volume":      {pendingClaim(boundOnce), nil, "Warning ClaimLost"},
	"bound, volume of another claim": {
		pendingClaim(naming("v"), boundOnce), []runtime.Object{free("v", "1", referringTo("other", "other"))},
		"Warning ClaimMisbound"},
	"bound, volume of former claim of the name": {
		pendingClaim(naming("v"), boundOnce), []runtime.Object{free("v", "1", referringTo("claim", "former"))},
		"Warning ClaimMisbound"},
	"bound": {
		pendingClaim(naming("v"), boundOnce), []runtime.Object{free("v", "1", referringTo("claim", "claim"))}, ""},
	"no pod": {
		pendingClaim(ofClass("class")), []runtime.Object{class("example.com/driver", wait)}, "Normal WaitForFirstConsumer"},
	"unscheduled pod": {
		pendingClaim(ofClass("class")), []runtime.Object{class("example.com/driver", wait), pod("", v1.PodPending)},
		"Normal WaitForPodScheduled"},
	"scheduled pod, no selected node": {
		pendingClaim(ofClass("class")), []runtime.Object{class("example.com/driver", wait), pod("node", v1.PodPending)},
		"Normal WaitForFirstConsumer"},
	"failed unscheduled pod": {
		pendingClaim(ofClass("class")), []runtime.Object{class("example.com/driver", wait), pod("", v1.PodFailed)},
		"Normal WaitForFirstConsumer"},
	"selected node": {
		pendingClaim(ofClass("class"), annotated(storage.AnnSelectedNode, "node")),
		[]runtime.Object{class("example.com/driver", wait)}, "Normal ExternalProvisioning"},
	"external provisioner": {
		pendingClaim(ofClass("class")), []runtime.Object{class("example.com/driver", immediate)},
		"Normal ExternalProvisioning"},
	"driver of migrated plugin": {
		pendingClaim(ofClass("class")), []runtime.Object{class("kubernetes.io/gce-pd", immediate)},
		"Normal ExternalProvisioning"},
	"in-tree plugin": {
		pendingClaim(ofClass("class")), []runtime.Object{class("kubernetes.io/host-path", immediate)}, ""},
	"missing class": {pendingClaim(ofClass("class")), nil, "Warning ProvisioningFailed"},
	"class without provisioner": {
		pendingClaim(ofClass("class")), []runtime.Object{class("kubernetes.io/no-provisioner", immediate)},
		"Warning ProvisioningFailed"},
	"claim being deleted": {
		pendingClaim(func(c *v1.PersistentVolumeClaim) { c.DeletionTimestamp = &metav1.Time{} }), nil, ""},
}

// Each case causes one reason. An event about another claim fails the case.
func TestEachReasonSendsOneEvent(t *testing.T) {
	for name, tc := range reasonCases {
		t.Run(name, func(t *testing.T) {
			bystander := pendingClaim()
			bystander.Name, bystander.UID = "bystander", "bystander"
			c, events := newController(t, append(tc.others, tc.claim, bystander)...)
			for range 2 { // the event is sent once
				reconcile(t, c)
			}
			var want []string
			if tc.want != "" {
				want = append(want, "*v1.PersistentVolumeClaim claim: "+tc.want)
			}
			if !slices.Equal(events.sent(), want) {
				t.Errorf("events %q, want %q", events.sent(), want)
			}
		})
	}
}

// Each case is one transition: from the phase of the claim to the wanted phase.
func TestClaimPhases(t *testing.T) {
	lostBefore := func(c *v1.PersistentVolumeClaim) {
		boundOnce(c)
		c.Status = v1.PersistentVolumeClaimStatus{Phase: v1.ClaimLost}
	}
	for name, tc := range map[string]struct {
		claim   *v1.PersistentVolumeClaim
		volumes []runtime.Object
		want    v1.PersistentVolumeClaimPhase
	}{
		"new, no volume fits":                {pendingClaim(func(c *v1.PersistentVolumeClaim) { c.Status.Phase = "" }), nil, v1.ClaimPending},
		"pending, no volume fits":            {pendingClaim(), nil, v1.ClaimPending},
		"pending, volume fits":               {pendingClaim(), []runtime.Object{free("v", "1")}, v1.ClaimBound},
		"pending, names volume":              {pendingClaim(naming("v")), []runtime.Object{free("v", "1")}, v1.ClaimBound},
		"pending, volume reserved for claim": {pendingClaim(), []runtime.Object{free("v", "1", referringTo("claim", ""))}, v1.ClaimBound},
		"pending, named volume of another claim": {
			pendingClaim(naming("v")), []runtime.Object{free("v", "1", referringTo("other", ""))}, v1.ClaimPending},
		"pending, was bound once":        {pendingClaim(annotated(storage.AnnBindCompleted, "yes")), nil, v1.ClaimLost},
		"bound":                          {pendingClaim(naming("v"), boundOnce), []runtime.Object{free("v", "1", referringTo("claim", "claim"))}, v1.ClaimBound},
		"bound, claimRef cleared":        {pendingClaim(naming("v"), boundOnce), []runtime.Object{free("v", "1")}, v1.ClaimBound},
		"bound, volume gone":             {pendingClaim(naming("v"), boundOnce), nil, v1.ClaimLost},
		"bound, volume of another claim": {pendingClaim(naming("v"), boundOnce), []runtime.Object{free("v", "1", referringTo("other", ""))}, v1.ClaimLost},
		"bound, names no volume":         {pendingClaim(boundOnce), nil, v1.ClaimLost},
		"lost":                           {pendingClaim(naming("v"), lostBefore), nil, v1.ClaimLost},
		"lost, volume restored":          {pendingClaim(naming("v"), lostBefore), []runtime.Object{free("v", "1", referringTo("claim", "claim"))}, v1.ClaimBound},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := newController(t, append(tc.volumes, tc.claim)...)
			claim := reconcile(t, c)
			if claim.Status.Phase != tc.want {
				t.Errorf("the claim is %s, want %s", claim.Status.Phase, tc.want)
			}
			shown := claim.Status.Capacity != nil && claim.Status.AccessModes != nil
			if bound := tc.want == v1.ClaimBound; shown != bound {
				t.Errorf("capacity and access modes are set: %v, want %v", shown, bound)
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

// BenchmarkBoundClaim reconciles claims that are bound, as after every start.
func BenchmarkBoundClaim(b *testing.B) {
	benchmarkBound(b, ofClass("class"), "class")
}

// BenchmarkBoundClaimWithoutClass reconciles bound claims without class beside many classes.
func BenchmarkBoundClaimWithoutClass(b *testing.B) {
	var classes []runtime.Object
	for i := range 50 {
		other := class("example.com/driver", storagev1.VolumeBindingImmediate)
		other.Name = fmt.Sprint("class-", i)
		classes = append(classes, other)
	}
	benchmarkBound(b, func(*v1.PersistentVolumeClaim) {}, "", classes...)
}

func benchmarkBound(b *testing.B, setClass func(*v1.PersistentVolumeClaim), className string,
	classes ...runtime.Object) {
	b.Helper()
	const pairs = 1000
	objects := append(classes, class("example.com/driver", storagev1.VolumeBindingImmediate))
	var keys []string
	for i := range pairs {
		name := fmt.Sprint("pair-", i)
		claim := pendingClaim(setClass, naming(name), boundOnce)
		claim.Name, claim.UID = name, types.UID(name)
		objects = append(objects, claim, free(name, "1", inClass(className), referringTo(name, name),
			func(v *v1.PersistentVolume) { v.Status.Phase = v1.VolumeBound }))
		keys = append(keys, "ns/"+name)
	}
	c, _ := newController(b, objects...)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if err := c.Reconcile(b.Context(), keys[i%pairs]); err != nil {
			b.Fatal(err)
		}
	}
}

// A webhook chooses the code of its denial. Each write of a binding has an event if it is refused.
func TestRefusedWriteIsReported(t *testing.T) {
	bound := free("v", "1", referringTo("claim", "claim"), phaseOfVolume(v1.VolumeBound))
	for name, tc := range map[string]struct {
		resource string
		objects  []runtime.Object
		event    string
	}{
		"claimRef":       {"persistentvolumes", []runtime.Object{pendingClaim(), free("v", "1")}, "Warning FailedBinding"},
		"phase":          {"persistentvolumes", []runtime.Object{pendingClaim(), free("v", "1", referringTo("claim", "claim"))}, "Warning FailedBinding"},
		"name of volume": {"persistentvolumeclaims", []runtime.Object{pendingClaim(), bound}, "Warning FailedBinding"},
		"default class":  {"persistentvolumeclaims", []runtime.Object{pendingClaim(), defaultClass()}, "Warning FailedBinding"},
		"provisioner": {"persistentvolumeclaims", []runtime.Object{pendingClaim(ofClass("class")),
			class("example.com/driver", immediate)}, "Warning ProvisioningFailed"},
	} {
		for _, code := range []int32{http.StatusBadRequest, http.StatusNotFound, http.StatusConflict, http.StatusGone,
			http.StatusUnprocessableEntity} {
			t.Run(fmt.Sprintf("%s, %d", name, code), func(t *testing.T) {
				c, events := newController(t, tc.objects...)
				c.Client.(*fake.Clientset).PrependReactor("patch", tc.resource,
					func(clienttesting.Action) (bool, runtime.Object, error) {
						return true, nil, &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code,
							Message: `admission webhook "w" denied the request`}}
					})
				for range 3 {
					if err := c.Reconcile(t.Context(), "ns/claim"); err == nil {
						t.Fatal("the refusal is no error")
					}
				}
				if got := events.sent(); len(got) != 1 || got[0] != "*v1.PersistentVolumeClaim claim: "+tc.event {
					t.Errorf("events %q, want one %s", got, tc.event)
				}
			})
		}
	}
}

// A mutating webhook removes the default class from the claim: no event of the claim follows.
func TestUndoneClassIsAnError(t *testing.T) {
	c, events := newController(t, pendingClaim(), defaultClass())
	c.Client.(*fake.Clientset).PrependReactor("patch", "persistentvolumeclaims",
		func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, pendingClaim(), nil
		})
	if err := c.Reconcile(t.Context(), "ns/claim"); err == nil || len(events.sent()) != 1 {
		t.Errorf("Reconcile() = %v, events %q", err, events.sent())
	}
}
