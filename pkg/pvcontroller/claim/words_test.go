package claim

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/exeunt-io/exeunt/pkg/binding"
)

// waitingPod uses the claim and has no node.
func waitingPod(name string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: v1.PodSpec{Volumes: []v1.Volume{{
		Name: "data", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "claim"}},
	}}}}
}

func classWith(provisioner string) *storagev1.StorageClass {
	return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "class"}, Provisioner: provisioner}
}

// The key words are those of kube-controller-manager 1.36 in the same event.
func TestClaimEventsHaveUpstreamKeyWords(t *testing.T) {
	named := func(claim *v1.PersistentVolumeClaim) { claim.Spec.VolumeName = "v" }
	other := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v"},
		Spec: v1.PersistentVolumeSpec{ClaimRef: &v1.ObjectReference{Namespace: "ns", Name: "other", UID: "o"}}}
	for name, tc := range map[string]struct {
		reason  binding.Reason
		claim   *v1.PersistentVolumeClaim
		volume  *v1.PersistentVolume
		objects []runtime.Object
		event   string
		words   []string
	}{
		"volume does not fit": {binding.VolumeMismatched, pendingClaim(named),
			&v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v"}}, nil,
			"Warning VolumeMismatch", []string{`Cannot bind to requested volume "v": requested PV is too small`}},
		"volume of another claim": {binding.VolumeBoundToOther, pendingClaim(named), other, nil, "Warning FailedBinding",
			[]string{`volume "v"`, "already bound to a different claim"}},
		"claim names no volume": {binding.ReferenceLost, pendingClaim(), nil, nil, "Warning ClaimLost",
			[]string{"has lost reference to PersistentVolume", "Data on the volume is lost"}},
		"volume is gone": {binding.VolumeLost, pendingClaim(named), nil, nil, "Warning ClaimLost",
			[]string{"has lost its PersistentVolume", "Data on the volume is lost"}},
		"two claims of one volume":  {binding.Misbound, pendingClaim(named), other, nil, "Warning ClaimMisbound", []string{"Two claims are bound to the same volume", "this one is bound incorrectly"}},
		"no class":                  {binding.NothingFits, pendingClaim(), nil, nil, "Normal FailedBinding", []string{"no persistent volumes available for this claim", "no storage class is set"}},
		"no pod":                    {binding.AwaitsConsumer, pendingClaim(ofClass("class")), nil, nil, "Normal WaitForFirstConsumer", []string{"waiting for first consumer to be created before binding"}},
		"one pod":                   {binding.AwaitsConsumer, pendingClaim(ofClass("class")), nil, []runtime.Object{waitingPod("web-0")}, "Normal WaitForPodScheduled", []string{"waiting for pod web-0 to be scheduled"}},
		"two pods":                  {binding.AwaitsConsumer, pendingClaim(ofClass("class")), nil, []runtime.Object{waitingPod("b"), waitingPod("a")}, "Normal WaitForPodScheduled", []string{"waiting for pods a,b to be scheduled"}},
		"class does not exist":      {binding.ClassMissing, pendingClaim(ofClass("class")), nil, nil, "Warning ProvisioningFailed", []string{`storageclass.storage.k8s.io "class" not found`}},
		"in-tree plugin is removed": {binding.ProvisionerMissing, pendingClaim(ofClass("class")), nil, []runtime.Object{classWith("kubernetes.io/gone")}, "Warning ProvisioningFailed", []string{"no volume plugin matched name: kubernetes.io/gone"}},
		"external provisioner": {binding.AwaitsProvisioner, pendingClaim(ofClass("class")), nil, []runtime.Object{classWith("example.com")}, "Normal ExternalProvisioning",
			[]string{"Waiting for a volume to be created", "the external provisioner 'example.com'", "manually by the system administrator", "verify that the provisioner is running and correctly registered"}},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := newController(t, append(tc.objects, tc.claim)...)
			event, shown := c.eventFor(c.Observer.observe(tc.claim, tc.volume, false), tc.reason)
			if got := event.Type + " " + event.Reason; !shown || got != tc.event {
				t.Errorf("event %q, want %q", got, tc.event)
			}
			for _, words := range tc.words {
				if !strings.Contains(event.Message, words) {
					t.Errorf("message %q lacks %q", event.Message, words)
				}
			}
		})
	}
}

func TestMismatchHasUpstreamKeyWords(t *testing.T) {
	class, block := "other", v1.PersistentVolumeBlock
	for words, change := range map[string]func(*v1.PersistentVolume){
		"marked for deletion":                      func(v *v1.PersistentVolume) { v.DeletionTimestamp = &metav1.Time{} },
		"requested PV is too small":                func(v *v1.PersistentVolume) { v.Spec.Capacity = nil },
		"storageClassName does not match":          func(v *v1.PersistentVolume) { v.Spec.StorageClassName = class },
		"volumeAttributesClassName does not match": func(v *v1.PersistentVolume) { v.Spec.VolumeAttributesClassName = &class },
		"incompatible volumeMode":                  func(v *v1.PersistentVolume) { v.Spec.VolumeMode = &block },
		"incompatible accessMode":                  func(v *v1.PersistentVolume) { v.Spec.AccessModes = nil },
	} {
		claim := pendingClaim()
		volume := &v1.PersistentVolume{Spec: v1.PersistentVolumeSpec{Capacity: claim.Spec.Resources.Requests,
			AccessModes: claim.Spec.AccessModes}}
		change(volume)
		if got := binding.Mismatch(volume, claim); !strings.Contains(got, words) {
			t.Errorf("mismatch %q lacks %q", got, words)
		}
	}
}

// Who may read the events of a namespace need not know the claims of another.
func TestEventsNameNoClaimOfAnotherNamespace(t *testing.T) {
	claim := pendingClaim(func(claim *v1.PersistentVolumeClaim) { claim.Spec.VolumeName = "v" })
	for _, reason := range []binding.Reason{binding.VolumeBoundToOther, binding.Misbound} {
		for namespace, named := range map[string]bool{claim.Namespace: true, "tenant": false} {
			c, _ := newController(t, claim)
			volume := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v"},
				Spec: v1.PersistentVolumeSpec{ClaimRef: &v1.ObjectReference{Namespace: namespace, Name: "payroll", UID: "o"}}}
			event, _ := c.eventFor(c.Observer.observe(claim, volume, false), reason)
			if strings.Contains(event.Message, "payroll") != named || strings.Contains(event.Message, "tenant") {
				t.Errorf("%s, claim of namespace %s: %s", reason, namespace, event.Message)
			}
		}
	}
}
