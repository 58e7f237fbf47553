package pvcontroller_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/migration"
	decide "github.com/exeunt-io/exeunt/pkg/protection"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/intree"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/metrics"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/pvcache"
	"github.com/exeunt-io/exeunt/test/fuzzobj"
)

// fakeCluster is a fake API server without validation, and the reconcilers of the pv-controller
// with caches that the test fills.
type fakeCluster struct {
	t         *testing.T
	client    *fake.Clientset
	caches    *pvcache.Caches
	reconcile []func(context.Context) error
}

func newFakeCluster(t *testing.T, objects []runtime.Object, honor bool) *fakeCluster {
	t.Helper()
	cluster := &fakeCluster{t: t, client: fake.NewClientset(objects...)}
	cluster.client.PrependReactor("create", "persistentvolumes",
		func(action clienttesting.Action) (bool, runtime.Object, error) {
			volume := action.(clienttesting.CreateAction).GetObject().(*v1.PersistentVolume)
			volume.UID, volume.ResourceVersion, volume.Status.Phase = types.UID("of "+volume.Name), "1", v1.VolumePending
			return false, nil, nil
		})
	var err error
	if cluster.caches, err = pvcache.New(informers.NewSharedInformerFactory(cluster.client, 0)); err != nil {
		t.Fatal(err)
	}
	recycling := intree.Recycling{Template: intree.DefaultTemplate(), MinimumTimeout: 60, TimeoutIncrement: 30}
	plugins := intree.NewSet(migration.New(),
		&intree.HostPath{Root: t.TempDir(), Provisions: true, Recycling: recycling}, &intree.NFS{Recycling: recycling})
	c, err := pvcontroller.New(pvcontroller.Config{
		Clients: pvcontroller.OneClient(cluster.client), Caches: cluster.caches,
		Reporter: controller.NewReporter(&record.FakeRecorder{}),
		Plugins:  plugins, Operations: metrics.NewOperations(), Dynamic: true, Honor: honor,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range fuzzobj.Claims {
		cluster.reconcile = append(cluster.reconcile,
			func(ctx context.Context) error { return c.Claims.Reconcile(ctx, key) },
			func(ctx context.Context) error { return c.Provisioner.Reconcile(ctx, key) },
			func(ctx context.Context) error { return c.Protection.Reconcile(ctx, key) })
	}
	for _, name := range fuzzobj.Volumes {
		cluster.reconcile = append(cluster.reconcile,
			func(ctx context.Context) error { return c.Volumes.Reconcile(ctx, name) },
			func(ctx context.Context) error { return c.Reclaimer.Reconcile(ctx, name) })
	}
	return cluster
}

// setCaches fills the caches with the objects.
func (cluster *fakeCluster) setCaches(objects ...runtime.Object) {
	cluster.t.Helper()
	byStore := map[cache.SharedIndexInformer][]any{cluster.caches.Claims: nil, cluster.caches.Volumes: nil,
		cluster.caches.Classes: nil, cluster.caches.Pods: nil}
	for _, object := range objects {
		informer := cluster.informer(object)
		byStore[informer] = append(byStore[informer], object.DeepCopyObject())
	}
	for informer, list := range byStore {
		if err := informer.GetStore().Replace(list, ""); err != nil {
			cluster.t.Fatal(err)
		}
	}
}

func (cluster *fakeCluster) informer(object runtime.Object) cache.SharedIndexInformer {
	switch object.(type) {
	case *v1.PersistentVolumeClaim:
		return cluster.caches.Claims
	case *v1.PersistentVolume:
		return cluster.caches.Volumes
	case *storagev1.StorageClass:
		return cluster.caches.Classes
	}
	return cluster.caches.Pods
}

// apiObjects returns the claims and volumes of the API server.
func (cluster *fakeCluster) apiObjects() (claims map[string]*v1.PersistentVolumeClaim, volumes map[string]*v1.PersistentVolume) {
	cluster.t.Helper()
	claims, volumes = map[string]*v1.PersistentVolumeClaim{}, map[string]*v1.PersistentVolume{}
	claimList, claimsErr := cluster.client.CoreV1().PersistentVolumeClaims(fuzzobj.Namespace).
		List(cluster.t.Context(), metav1.ListOptions{})
	volumeList, volumesErr := cluster.client.CoreV1().PersistentVolumes().List(cluster.t.Context(), metav1.ListOptions{})
	if err := errors.Join(claimsErr, volumesErr); err != nil {
		cluster.t.Fatal(err)
	}
	for i := range claimList.Items {
		claims[controller.Key(&claimList.Items[i])] = &claimList.Items[i]
	}
	for i := range volumeList.Items {
		volumes[volumeList.Items[i].Name] = &volumeList.Items[i]
	}
	return claims, volumes
}

// syncCaches fills the caches with the current claims and volumes, and the rest unchanged.
func (cluster *fakeCluster) syncCaches(rest []runtime.Object) {
	cluster.t.Helper()
	var now []runtime.Object
	claims, volumes := cluster.apiObjects()
	for _, c := range claims {
		now = append(now, c)
	}
	for _, v := range volumes {
		now = append(now, v)
	}
	for _, object := range rest {
		if informer := cluster.informer(object); informer != cluster.caches.Claims && informer != cluster.caches.Volumes {
			now = append(now, object)
		}
	}
	cluster.setCaches(now...)
}

// writes counts the writing requests since the last call.
func (cluster *fakeCluster) writes() int {
	count := 0
	for _, action := range cluster.client.Actions() {
		if _, patched := action.(clienttesting.PatchAction); patched || action.GetVerb() == "delete" ||
			action.GetVerb() == "create" {
			count++
		}
	}
	cluster.client.ClearActions()
	return count
}

func seed(f *testing.F) {
	f.Helper()
	fuzzobj.AddSeeds(f, 80, 600)
}

// For any objects, the reconcilers reach a state without further writes: no panic, and no
// two reconcilers that revert each other.
func FuzzReconcilersSettle(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		d := fuzzobj.New(data)
		honor := d.Below(2) == 0
		objects := d.Objects()
		cluster := newFakeCluster(t, objects, honor)
		const most = 8
		for round := range most + 1 {
			before, beforeVolumes := cluster.apiObjects()
			for _, reconcile := range cluster.reconcile {
				cluster.syncCaches(objects)
				err := reconcile(t.Context()) // the loop would retry with backoff
				if writes := cluster.writes(); writes > 6 {
					t.Fatalf("%d writes in one reconcile, error %v", writes, err)
				}
			}
			after, afterVolumes := cluster.apiObjects()
			diff := cmp.Diff(before, after) + cmp.Diff(beforeVolumes, afterVolumes)
			if diff == "" {
				return
			}
			if round == most {
				t.Fatalf("still writing after %d rounds; the last round changed:\n%s", most, diff)
			}
		}
	})
}

// For any content of the caches, a volume is released or made available only if its claim
// is gone or bound elsewhere on the API server, and a claim loses its protection only if
// no pod on the API server uses the claim.
func FuzzStaleCachesReleaseNothing(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		d := fuzzobj.New(data)
		honor := d.Below(2) == 0
		objects := d.Objects()
		bindPair(d, objects)
		cluster := newFakeCluster(t, objects, honor)
		cluster.setCaches(wrongCache(d, objects)...)
		claimsBefore, volumesBefore := cluster.apiObjects()
		for _, reconcile := range cluster.reconcile {
			_ = reconcile(t.Context()) // a write based on a wrong cache fails, as it should
		}
		claims, volumes := cluster.apiObjects()
		for name, volume := range volumes {
			expectBoundVolumeKept(t, volumesBefore[name], volume, claims)
		}
		for key, claim := range claims {
			expectClaimKept(t, claimsBefore[key], claim, cluster.pods())
		}
	})
}

// bindPair binds the last claim and the last volume to each other, mostly.
func bindPair(d *fuzzobj.Choices, objects []runtime.Object) {
	var claim *v1.PersistentVolumeClaim
	var volume *v1.PersistentVolume
	for _, object := range objects {
		switch object := object.(type) {
		case *v1.PersistentVolumeClaim:
			claim = object
		case *v1.PersistentVolume:
			volume = object
		}
	}
	if claim == nil || volume == nil || d.Below(4) == 0 {
		return
	}
	claim.Spec.VolumeName, claim.Status.Phase = volume.Name, v1.ClaimBound
	volume.Spec.ClaimRef = &v1.ObjectReference{Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID}
	volume.Status.Phase = v1.VolumeBound
}

// wrongCache returns the objects; some are missing, others replaced under their name.
func wrongCache(d *fuzzobj.Choices, objects []runtime.Object) []runtime.Object {
	var shown []runtime.Object
	for _, object := range objects {
		switch d.Below(4) {
		case 0:
		case 1:
			shown = append(shown, replaced(d, object))
		default:
			shown = append(shown, object)
		}
	}
	return shown
}

func replaced(d *fuzzobj.Choices, object runtime.Object) runtime.Object {
	switch object := object.(type) {
	case *v1.PersistentVolumeClaim:
		return d.Claim(object.Name)
	case *v1.PersistentVolume:
		return d.Volume(object.Name)
	}
	return object
}

// expectBoundVolumeKept fails if a volume was released although its claim exists.
func expectBoundVolumeKept(t *testing.T, before, now *v1.PersistentVolume,
	claims map[string]*v1.PersistentVolumeClaim) {
	t.Helper()
	ref := before.Spec.ClaimRef
	if ref == nil || ref.UID == "" {
		return
	}
	released := before.Status.Phase != now.Status.Phase && (now.Status.Phase == v1.VolumeReleased ||
		now.Status.Phase == v1.VolumeFailed || now.Status.Phase == v1.VolumeAvailable)
	madeAvailable := now.Spec.ClaimRef == nil || now.Spec.ClaimRef.UID != ref.UID
	claim := claims[ref.Namespace+"/"+ref.Name]
	if claim == nil || claim.UID != ref.UID || claim.Spec.VolumeName != "" && claim.Spec.VolumeName != now.Name {
		return
	}
	if released || madeAvailable {
		t.Errorf("volume %s was released, although its claim exists: phase %s, was %s; claimRef %v, was %v",
			now.Name, now.Status.Phase, before.Status.Phase, now.Spec.ClaimRef, ref)
	}
}

// expectClaimKept fails if a claim names another volume than before, or lost its
// protection while a pod uses it.
func expectClaimKept(t *testing.T, before, now *v1.PersistentVolumeClaim, pods []v1.Pod) {
	t.Helper()
	if before.Spec.VolumeName != "" && now.Spec.VolumeName != before.Spec.VolumeName {
		t.Errorf("claim %s names volume %s, before %s", now.Name, now.Spec.VolumeName, before.Spec.VolumeName)
	}
	if !finalizer.Has(before.Finalizers, finalizer.ClaimProtection) ||
		finalizer.Has(now.Finalizers, finalizer.ClaimProtection) {
		return
	}
	for i := range pods {
		if decide.Uses(&pods[i], now) {
			t.Errorf("claim %s lost its protection, although pod %s uses it", now.Name, pods[i].Name)
		}
	}
}

func (cluster *fakeCluster) pods() []v1.Pod {
	cluster.t.Helper()
	pods, err := cluster.client.CoreV1().Pods(fuzzobj.Namespace).List(cluster.t.Context(), metav1.ListOptions{})
	if err != nil {
		cluster.t.Fatal(err)
	}
	return pods.Items
}
