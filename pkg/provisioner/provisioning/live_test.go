package provisioning

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// An empty page of another server behind the address of the API server does not prove that no
// PersistentVolume has a disk.
func TestPageOfAnotherServerIsNoList(t *testing.T) {
	client := fake.NewClientset()
	client.PrependReactor("list", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetResource().Resource == "persistentvolumes" {
			return true, &v1.PersistentVolumeList{}, nil
		}
		return true, &v1.PersistentVolumeClaimList{}, nil
	})
	if found, err := anyVolume(t.Context(), client, new(time.Now()), func(*v1.PersistentVolume) bool { return true }); err == nil {
		t.Errorf("a volume is found: %v", found)
	}
	if found, err := anyClaim(t.Context(), client, new(time.Now()), func(*v1.PersistentVolumeClaim) bool { return true }); err == nil {
		t.Errorf("a claim is found: %v", found)
	}
}
