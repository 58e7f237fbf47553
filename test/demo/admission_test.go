package demo

import (
	"bytes"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fakediscovery "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/kubernetes/fake"
	clientgotesting "k8s.io/client-go/testing"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
)

// admissionServer returns a client of an API server on which the admission policy changes from
// enforced or not to the opposite after some probes, and the number of probes so far.
func admissionServer(enforced bool, probes int) (*fake.Clientset, *int) {
	client, seen := fake.NewClientset(), new(int)
	client.PrependReactor("patch", "persistentvolumes", func(action clientgotesting.Action) (bool, runtime.Object, error) {
		patch, is := action.(clientgotesting.PatchAction)
		if !is || !bytes.Contains(patch.GetPatch(), []byte(`"Delete"`)) {
			return false, nil, nil
		}
		*seen++
		volume := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: patch.GetName()}}
		if enforced != (*seen > probes) {
			volume.Finalizers = []string{string(finalizer.External)}
		}
		return true, volume, nil
	})
	return client, seen
}

func TestAdmissionPolicyIsAwaited(t *testing.T) {
	for name, enforced := range map[string]bool{"until it is in force": true, "until it is no longer in force": false} {
		t.Run(name, func(t *testing.T) {
			client, probes := admissionServer(!enforced, 3)
			volumes := client.CoreV1().PersistentVolumes()
			if err := awaitAdmission(t.Context(), volumes, enforced); err != nil || *probes != 4 {
				t.Errorf("awaitAdmission = %v after %d probes, want success after 4", err, *probes)
			}
			if left, err := volumes.List(t.Context(), metav1.ListOptions{}); err != nil || len(left.Items) != 0 {
				t.Errorf("%d volumes are left, error %v", len(left.Items), err)
			}
		})
	}
}

func TestAdmissionPolicyIsProbedWithABoundVolume(t *testing.T) {
	client, _ := admissionServer(true, 100)
	volumes := client.CoreV1().PersistentVolumes()
	if err := createProbe(t.Context(), volumes); err != nil {
		t.Fatal(err)
	}
	probe, err := volumes.Get(t.Context(), probeName, metav1.GetOptions{})
	if err != nil || probe.Status.Phase != v1.VolumeBound || !strings.Contains(drivers, probe.Spec.CSI.Driver+":") {
		t.Errorf("the probe is %+v, error %v; want a bound volume of the listed driver", probe, err)
	}
}

func TestServedAdmissionPolicyIsDiscovered(t *testing.T) {
	for name, tc := range map[string]struct {
		kinds []string
		want  bool
	}{
		"Kubernetes 1.36": {[]string{"ValidatingAdmissionPolicy", "MutatingAdmissionPolicy"}, true},
		"Kubernetes 1.35": {[]string{"ValidatingAdmissionPolicy"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			list := &metav1.APIResourceList{GroupVersion: "admissionregistration.k8s.io/v1"}
			for _, kind := range tc.kinds {
				list.APIResources = append(list.APIResources, metav1.APIResource{Kind: kind})
			}
			served := &fakediscovery.FakeDiscovery{Fake: &clientgotesting.Fake{Resources: []*metav1.APIResourceList{list}}}
			if got, err := servesAdmission(served); err != nil || got != tc.want {
				t.Errorf("servesAdmission = %t, %v, want %t", got, err, tc.want)
			}
		})
	}
}
