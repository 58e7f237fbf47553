package runner

import (
	"errors"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

func TestClaimWithUnseenVolumeIsNotDeleted(t *testing.T) { // 06, 21
	volume := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-1"}}
	refuses := func(c *fake.Clientset) {
		c.PrependReactor("get", "persistentvolumes", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, errors.New("no answer")
		})
	}
	for name, tc := range map[string]struct {
		objects []runtime.Object
		change  func(*fake.Clientset)
		deletes bool
	}{
		"no volume":  {nil, func(*fake.Clientset) {}, true},
		"a volume":   {[]runtime.Object{volume}, func(*fake.Clientset) {}, false},
		"unreadable": {nil, refuses, false},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset(tc.objects...)
			tc.change(client)
			s := &session{Runner: New(Config{Clients: &Clients{Objects: client}})}
			if err := s.confirmUnseen(t.Context(), "pvc-1"); (err == nil) != tc.deletes {
				t.Errorf("error %v, want none: %t", err, tc.deletes)
			}
		})
	}
}
