package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
)

func TestMissingAdmissionPolicyMakesUsersCareful(t *testing.T) {
	unserved := fmt.Errorf("apply: %w",
		&meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "MutatingAdmissionPolicy"}})
	refused := errors.New("refused")
	for name, tc := range map[string]struct {
		applied, want      error
		admission, careful bool
	}{
		"applied":  {nil, nil, true, false},
		"unserved": {unserved, nil, false, true},
		"refused":  {refused, refused, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			w := &world{config: Config{Out: &out}}
			err := w.recordAdmission(tc.applied)
			if !errors.Is(err, tc.want) || w.admission != tc.admission || w.careful != tc.careful {
				t.Errorf("recordAdmission = %v, admission %t, careful %t", err, w.admission, w.careful)
			}
			if said := strings.Contains(out.String(), "has no MutatingAdmissionPolicy"); said != tc.careful {
				t.Errorf("got the output %q", &out)
			}
		})
	}
}

func TestUsersWaitForAFinalizerThatWillCome(t *testing.T) {
	now := metav1.Now()
	claim := &v1.ObjectReference{Name: "claim"}
	for name, tc := range map[string]struct {
		policy    v1.PersistentVolumeReclaimPolicy
		claim     *v1.ObjectReference
		deleted   *metav1.Time
		protected bool
		want      bool
	}{
		"claimed, Delete":               {v1.PersistentVolumeReclaimDelete, claim, nil, false, true},
		"protected":                     {v1.PersistentVolumeReclaimDelete, claim, nil, true, false},
		"Retain needs no finalizer":     {v1.PersistentVolumeReclaimRetain, claim, nil, false, false},
		"never claimed":                 {v1.PersistentVolumeReclaimDelete, nil, nil, false, false},
		"deleted, so none can be added": {v1.PersistentVolumeReclaimDelete, claim, &now, false, false},
	} {
		volume := &v1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: tc.deleted},
			Spec:       v1.PersistentVolumeSpec{PersistentVolumeReclaimPolicy: tc.policy, ClaimRef: tc.claim},
		}
		if tc.protected {
			volume.Finalizers = []string{string(finalizer.External)}
		}
		if got := lacksProtection(volume); got != tc.want {
			t.Errorf("%s: lacks protection: %v, want %v", name, got, tc.want)
		}
	}
}
