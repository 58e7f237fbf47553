package csibackend

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
)

func TestClassSecretIsThatOfAServedClass(t *testing.T) {
	secret := map[string]string{"csi.storage.k8s.io/provisioner-secret-name": "secret",
		"csi.storage.k8s.io/provisioner-secret-namespace": "ns"}
	for name, tc := range map[string]struct {
		class *storagev1.StorageClass
		want  string
	}{
		"served class":     {&storagev1.StorageClass{Provisioner: "driver", Parameters: secret}, "secret"},
		"class of another": {&storagev1.StorageClass{Provisioner: "other", Parameters: secret}, ""},
		"deleted class":    {nil, ""},
		"no secret":        {&storagev1.StorageClass{Provisioner: "driver"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			classes := informers.NewSharedInformerFactory(fake.NewClientset(), 0).Storage().V1().StorageClasses()
			if tc.class != nil {
				tc.class.Name = "class"
				if err := classes.Informer().GetStore().Add(tc.class); err != nil {
					t.Fatal(err)
				}
			}
			volume := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "volume"}}
			volume.Spec.StorageClassName, volume.Spec.ClaimRef = "class", &v1.ObjectReference{Namespace: "ns", Name: "claim"}
			inputs := NewInputs(InputsConfig{Driver: &able{}, Translator: plugin{}})
			serves := func(provisioner string) bool { return provisioner == "driver" }
			got, err := inputs.ClassSecret(t.Context(), classes.Lister(), serves, volume)
			if err != nil || (got == nil) != (tc.want == "") || got != nil && got.Name != tc.want {
				t.Errorf("ClassSecret = %v, %v, want %q", got, err, tc.want)
			}
		})
	}
}
