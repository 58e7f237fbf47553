package storage

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/storage"
)

// The pods of a claim that was created again under the name do not use the old volume.
func TestClaimCreatedAgainIsNotTheVolumes(t *testing.T) {
	claim := corev1.PersistentVolumeClaim{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "new"},
	}
	reader := answering(t, claim)
	for uid, has := range map[types.UID]bool{"old": false, "new": true} {
		v := &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{ClaimRef: &corev1.ObjectReference{Namespace: "shop",
			Name: "data", UID: uid}}}
		c := &volumeChain{subject: subject[corev1.PersistentVolume]{Explorer: readerOnly{reader: reader}, typed: v}}
		relation := c.readClaim(t.Context())
		if (c.claim != nil) != has || (relation == storage.ClaimGone) == has {
			t.Errorf("claimRef with UID %q: relation %v, claim %v", uid, relation, c.claim != nil)
		}
	}
}
