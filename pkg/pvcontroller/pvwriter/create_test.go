package pvwriter_test

import (
	"errors"
	"testing"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	kubetesting "k8s.io/client-go/testing"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/pvwriter"
)

// A webhook says that the volume exists.
func TestVolumeExistsOnlyIfItIsRead(t *testing.T) {
	for name, stored := range map[string][]runtime.Object{"volume exists": {cached()}, "volume does not exist": nil} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset(stored...)
			client.PrependReactor("create", "persistentvolumes", func(kubetesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrors.NewAlreadyExists(v1.Resource("persistentvolumes"), "disk")
			})
			claim := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "uid-2"}}
			_, err := pvwriter.New(client, controller.NewVersions()).
				Create(t.Context(), pvwriter.Provisioned{Volume: cached(), Claim: claim})
			if err == nil || errors.Is(err, controller.ErrStaleCache) != (stored != nil) {
				t.Errorf("error %v", err)
			}
		})
	}
}
