package provision_test

import (
	"errors"
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/provision"
)

// What was refused for something that can change may have been asked for before it
// did.
func TestARefusalLastsIfNothingThatItIsForCanChange(t *testing.T) {
	all := provision.Driver{Name: "driver", Snapshots: true, Clones: true, Modifies: true}
	template := func(name string) map[string]string {
		return map[string]string{"csi.storage.k8s.io/provisioner-secret-name": name, "csi.storage.k8s.io/provisioner-secret-namespace": "ns"}
	}
	for name, tc := range map[string]struct {
		spec       v1.PersistentVolumeClaimSpec
		parameters map[string]string
		driver     provision.Driver
		lasts      bool
	}{
		"a selector":                                {v1.PersistentVolumeClaimSpec{Selector: &metav1.LabelSelector{}}, nil, all, true},
		"an unknown parameter":                      {parameters: map[string]string{"csi.storage.k8s.io/unknown": ""}, driver: all, lasts: true},
		"a secret named by half":                    {parameters: map[string]string{"csi.storage.k8s.io/provisioner-secret-name": "name"}, driver: all, lasts: true},
		"a template that is wrong in any claim":     {parameters: template("${pvc.uid}"), driver: all, lasts: true},
		"an annotation that the claim lacks":        {parameters: template("${pvc.annotations['key']}"), driver: all},
		"a clone, by a driver that makes none":      {v1.PersistentVolumeClaimSpec{DataSource: &v1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: "origin"}}, nil, provision.Driver{}, false},
		"an attributes class, and a driver of none": {v1.PersistentVolumeClaimSpec{VolumeAttributesClassName: pointer("gold")}, nil, provision.Driver{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			claim := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "claim"}, Spec: tc.spec}
			_, err := provision.NeedsOf(claim, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "class"}, Parameters: tc.parameters}, tc.driver, "pvc-uid")
			var refusal *provision.Refusal
			if !errors.As(err, &refusal) || refusal.Lasting != tc.lasts {
				t.Errorf("NeedsOf = %v (%+v), want a refusal that lasts: %v", err, refusal, tc.lasts)
			}
		})
	}
}
