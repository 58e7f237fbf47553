package capacity_test

import (
	"encoding/json"
	"testing"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/exeunt-io/exeunt/pkg/capacity"
)

// A Deployment with --capacity-ownerref-level=1 has a new ReplicaSet after each rollout, and keeps
// the old ones. The API server refuses a second owner that is a controller, so that the object
// would show the old capacity from then on.
func TestUpdateReplacesFormerController(t *testing.T) {
	object := &storagev1.CSIStorageCapacity{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "object", UID: "uid", ResourceVersion: "7",
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "former", UID: "former", Controller: &yes},
			}},
		Capacity: resource.NewQuantity(1, resource.BinarySI),
	}
	body, err := manager().Update(object, capacity.Answer{Bytes: 2}).Bytes()
	if err != nil {
		t.Fatal(err)
	}
	var operations []struct {
		Path  string
		Value json.RawMessage
	}
	if err := json.Unmarshal(body, &operations); err != nil {
		t.Fatal(err)
	}
	owners := object.OwnerReferences
	for _, operation := range operations {
		if operation.Path != "/metadata/ownerReferences" {
			continue
		}
		owners = nil
		if err := json.Unmarshal(operation.Value, &owners); err != nil {
			t.Fatal(err)
		}
	}
	if len(owners) != 1 || owners[0].UID == "former" {
		t.Errorf("owners %+v, want the present one", owners)
	}
	if faults := validation.ValidateOwnerReferences(owners, field.NewPath("metadata",
		"ownerReferences")); len(faults) > 0 {
		t.Errorf("the API server refuses the update: %v", faults.ToAggregate())
	}
}
