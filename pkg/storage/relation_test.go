package storage_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/storage"
)

func TestClaimOf(t *testing.T) {
	claim := func(uid types.UID, volume string, completed bool) *v1.PersistentVolumeClaim {
		c := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: uid},
			Spec: v1.PersistentVolumeClaimSpec{VolumeName: volume}}
		if completed {
			c.Annotations = map[string]string{storage.AnnBindCompleted: "yes"}
		}
		return c
	}
	byUID, byName := &v1.ObjectReference{Name: "c", UID: "uid"}, &v1.ObjectReference{Name: "c"}
	for name, tc := range map[string]struct {
		ref   *v1.ObjectReference
		claim *v1.PersistentVolumeClaim
		want  storage.ClaimRelation
	}{
		"no claimRef":                      {nil, nil, storage.ClaimNone},
		"no claimRef, claim names volume":  {nil, claim("uid", "v", true), storage.ClaimNone},
		"reserved by name":                 {byName, claim("uid", "v", true), storage.ClaimNone},
		"no claim":                         {byUID, nil, storage.ClaimGone},
		"claim with another UID":           {byUID, claim("other", "v", true), storage.ClaimGone},
		"new claim":                        {byUID, claim("uid", "", false), storage.ClaimUnbound},
		"claim lost its volume name":       {byUID, claim("uid", "", true), storage.ClaimLost},
		"claim names the volume":           {byUID, claim("uid", "v", false), storage.ClaimBound},
		"bound claim":                      {byUID, claim("uid", "v", true), storage.ClaimBound},
		"claim names another volume":       {byUID, claim("uid", "w", false), storage.ClaimElsewhere},
		"claim is bound to another volume": {byUID, claim("uid", "w", true), storage.ClaimElsewhere},
	} {
		t.Run(name, func(t *testing.T) {
			volume := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v"},
				Spec: v1.PersistentVolumeSpec{ClaimRef: tc.ref}}
			if got := storage.ClaimOf(volume, tc.claim); got != tc.want {
				t.Errorf("ClaimOf = %v, want %v", got, tc.want)
			}
			unread := storage.ClaimUnread
			if tc.want == storage.ClaimNone {
				unread = storage.ClaimNone
			}
			if got := storage.UnreadClaim(volume); got != unread {
				t.Errorf("UnreadClaim = %v, want %v", got, unread)
			}
		})
	}
}
