package pvcontroller_test

import (
	"context"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/migration"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/intree"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/metrics"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/pvcache"
	"github.com/exeunt-io/exeunt/pkg/reclaim/plugin"
)

// recycledVolume returns an unclaimed volume, its recycler pod that is being deleted, and a claim
// that the volume satisfies.
func recycledVolume(phase v1.PersistentVolumePhase) (*v1.PersistentVolume, *v1.Pod, *v1.PersistentVolumeClaim) {
	modes, size := []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce},
		v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}
	volume := &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "v", UID: "u", ResourceVersion: "1"},
		Spec: v1.PersistentVolumeSpec{
			AccessModes: modes, Capacity: size, PersistentVolumeReclaimPolicy: v1.PersistentVolumeReclaimRetain,
			PersistentVolumeSource: v1.PersistentVolumeSource{HostPath: &v1.HostPathVolumeSource{Path: "/data"}},
		},
		Status: v1.PersistentVolumeStatus{Phase: phase},
	}
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceDefault, Name: plugin.RecyclerName(volume), UID: "p", ResourceVersion: "1",
			Annotations: map[string]string{plugin.RecyclerAnnotation: "u/before"}, DeletionTimestamp: &metav1.Time{},
		},
		Status: v1.PodStatus{Phase: v1.PodRunning},
	}
	claim := &v1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "claim", UID: "c", ResourceVersion: "1"},
		Spec: v1.PersistentVolumeClaimSpec{AccessModes: modes,
			Resources: v1.VolumeResourceRequirements{Requests: size}},
		Status: v1.PersistentVolumeClaimStatus{Phase: v1.ClaimPending},
	}
	return volume, pod, claim
}

// The end of the pod wakes the volume, and a claim that waits for any volume.
func TestEndOfRecyclerPodWakesVolumeAndClaim(t *testing.T) {
	for phase, tc := range map[v1.PersistentVolumePhase]struct {
		event  string // while the pod runs
		usable func(*v1.PersistentVolume) bool
	}{
		v1.VolumeReleased: {"Normal RecyclerPod",
			func(v *v1.PersistentVolume) bool { return v.Status.Phase == v1.VolumeAvailable }},
		v1.VolumeAvailable: {"Normal FailedBinding", func(v *v1.PersistentVolume) bool { return v.Spec.ClaimRef != nil }},
	} {
		t.Run(string(phase), func(t *testing.T) {
			volume, pod, claim := recycledVolume(phase)
			client, recorder := fake.NewClientset(volume, pod, claim), record.NewFakeRecorder(100)
			volumes, err := client.CoreV1().PersistentVolumes().Watch(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			run(t, client, recorder)
			for event := range recorder.Events {
				if strings.HasPrefix(event, tc.event) {
					break
				}
			}
			if before, err := client.CoreV1().PersistentVolumes().Get(t.Context(), "v", metav1.GetOptions{}); err != nil ||
				tc.usable(before) {
				t.Errorf("the volume is %v, %v while the pod runs", before, err)
			}
			if err := client.CoreV1().Pods(pod.Namespace).Delete(t.Context(), pod.Name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			for event := range volumes.ResultChan() {
				if tc.usable(event.Object.(*v1.PersistentVolume)) {
					break
				}
			}
		})
	}
}

// run runs the controllers until the test ends.
func run(t *testing.T, client *fake.Clientset, recorder record.EventRecorder, change ...func(*pvcontroller.Config)) {
	t.Helper()
	factory := informers.NewSharedInformerFactory(client, 0)
	caches, err := pvcache.New(factory)
	if err != nil {
		t.Fatal(err)
	}
	config := pvcontroller.Config{
		Clients: pvcontroller.OneClient(client), Caches: caches, Reporter: controller.NewReporter(recorder),
		Plugins: intree.NewSet(migration.New(), &intree.HostPath{}), Operations: metrics.NewOperations(), Honor: true,
	}
	for _, f := range change {
		f(&config)
	}
	controllers, err := pvcontroller.New(config)
	if err != nil {
		t.Fatal(err)
	}
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())
	if err := controllers.Watch(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		controllers.Run(ctx, 1, 1)
	}()
	t.Cleanup(func() {
		stop()
		<-ended
	})
}
