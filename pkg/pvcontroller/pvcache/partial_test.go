package pvcache

import (
	"math/rand/v2"
	"reflect"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/controller/partial"
	"github.com/exeunt-io/exeunt/pkg/protection"
	"github.com/exeunt-io/exeunt/pkg/reclaim/plugin"
	"github.com/exeunt-io/exeunt/test/controllertest"
	"github.com/exeunt-io/exeunt/test/fuzzobj"
)

// Informers transform what they decode: the result must not depend on the rules.
func TestPartialObjectsAreCachedAsWholeOnes(t *testing.T) {
	random, rules := rand.New(rand.NewPCG(1, 1)), Rules()
	for range 1000 {
		data := make([]byte, 200)
		for i := range data {
			data[i] = byte(random.Uint32())
		}
		dice := fuzzobj.New(data)
		pod := controllertest.WithManagedFields(dice.Pod("pod"))
		if random.IntN(2) == 0 {
			pod.Annotations = map[string]string{plugin.RecyclerAnnotation: "volume", "other": "text"}
		}
		same(t, rules, trimPod, pod)
		claim := dice.Claim("p0")
		if ephemeral := "pod-scratch"; random.IntN(2) == 0 {
			claim = dice.Claim(ephemeral)
		}
		claim.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(pod, v1.SchemeGroupVersion.WithKind("Pod"))}
		if protection.Uses(controllertest.Decode(t, PodRules(), pod), claim) != protection.Uses(pod, claim) {
			t.Fatalf("whether pod %v uses claim %v depends on the rules", pod, claim)
		}
		volume := controllertest.WithManagedFields(dice.Volume("volume"))
		if random.IntN(2) == 0 {
			volume.Spec.PersistentVolumeSource = v1.PersistentVolumeSource{CSI: csiSource()}
		}
		same(t, rules, trimmed(trimVolume, controller.StripManagedFields), volume)
		claim.Labels = map[string]string{"app": "database"}
		same(t, rules, trimmed(trimClaim, controller.StripManagedFields), controllertest.WithManagedFields(claim))
	}
}

func csiSource() *v1.CSIPersistentVolumeSource {
	secret := &v1.SecretReference{Namespace: "secrets", Name: "key"}
	return &v1.CSIPersistentVolumeSource{
		Driver: "csi.example.com", VolumeHandle: "handle", ReadOnly: true, FSType: "ext4",
		VolumeAttributes:           map[string]string{"pool": "a"},
		ControllerPublishSecretRef: secret, NodeStageSecretRef: secret, NodePublishSecretRef: secret,
		ControllerExpandSecretRef: secret, NodeExpandSecretRef: secret,
	}
}

func same[T runtime.Object](t *testing.T, rules partial.Rules, transform func(any) (any, error), object T) {
	t.Helper()
	want, wholeErr := transform(controllertest.Decode(t, nil, object))
	got, partErr := transform(controllertest.Decode(t, rules, object))
	if wholeErr != nil || partErr != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("cached %v (%v), want %v (%v)", got, partErr, want, wholeErr)
	}
}

// What differs between volumes and no reconciler reads takes most of the memory in a large cluster.
func TestCachedObjectsLackWhatNoReconcilerReads(t *testing.T) {
	caches := filled(t, 1)
	volume, claim := caches.Volumes.GetStore().List()[0].(*v1.PersistentVolume),
		caches.Claims.GetStore().List()[0].(*v1.PersistentVolumeClaim)
	if want := (&v1.CSIPersistentVolumeSource{Driver: "a.csi.example.com"}); !reflect.DeepEqual(volume.Spec.CSI, want) {
		t.Errorf("source %v, want %v", volume.Spec.CSI, want)
	}
	if len(claim.Labels) > 0 || len(claim.Annotations) == 0 {
		t.Errorf("labels %v, annotations %v", claim.Labels, claim.Annotations)
	}
}

func TestPartialPodKeepsItsVersion(t *testing.T) {
	pod := controllertest.Decode(t, Rules(),
		&v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "bookmark", ResourceVersion: "7"}})
	if pod.ResourceVersion != "7" {
		t.Errorf("resource version %q", pod.ResourceVersion)
	}
}

func BenchmarkDecodePod(b *testing.B) {
	pod := controllertest.WithManagedFields(fuzzobj.New(make([]byte, 200)).Pod("pod"))
	for range 3 {
		pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{
			Name: "container", Image: "example.com/image:1", Command: []string{"/bin/program", "--flag=1", "--other=2"},
			Env: []v1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "2"}, {Name: "C", Value: "3"}},
			VolumeMounts: []v1.VolumeMount{{Name: "data", MountPath: "/data"},
				{Name: "kube-api-access", MountPath: "/var/run/secrets/kubernetes.io/serviceaccount"}},
		})
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses,
			v1.ContainerStatus{Name: "container", Image: "example.com/image:1",
				ImageID: "example.com/image@sha256:0123456789abcdef", ContainerID: "containerd://0123456789abcdef"})
		pod.Status.Conditions = append(pod.Status.Conditions, v1.PodCondition{Type: v1.PodReady, Status: v1.ConditionTrue},
			v1.PodCondition{Type: v1.PodInitialized, Status: v1.ConditionTrue})
	}
	for name, rules := range map[string]partial.Rules{"whole": nil, "part": Rules()} {
		b.Run(name, func(b *testing.B) {
			controllertest.MeasureDecode(b, rules, pod)
		})
	}
}
