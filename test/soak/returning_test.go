package main

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/test/sandbox"
)

func TestUsedDiskOfReturningClaimMustStay(t *testing.T) {
	claim := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: longLivedSpace, Name: "claim", UID: "uid"}}
	r := returning{used: map[string]*v1.PersistentVolumeClaim{"handle": claim}}
	if found := r.lost(map[string]string{"handle": "pvc-uid"}); len(found) > 0 {
		t.Errorf("with the disk: %v", found)
	}
	if found := r.lost(nil); len(found) != 1 || !strings.Contains(found[0].text, "disk handle: claim claim") {
		t.Errorf("without the disk: %v", found)
	}
}

func TestReturningClaimMustBeBoundAgain(t *testing.T) {
	v := newView(newRecorder(false, false))
	claim := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: longLivedSpace, Name: "claim", UID: "uid"}}
	r := returning{created: []*v1.PersistentVolumeClaim{claim}}
	v.put("claim", claim)
	if found := r.unbound(v); len(found) != 1 {
		t.Errorf("while it is Pending: %v", found)
	}
	bound := claim.DeepCopy()
	bound.Status.Phase = v1.ClaimBound
	v.put("claim", bound)
	if found := r.unbound(v); len(found) > 0 {
		t.Errorf("once it is bound: %v", found)
	}
}

func TestDisksOfReturningClaimsAreTooSmallForATime(t *testing.T) {
	claim := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{UID: "uid"}}
	r := returning{used: map[string]*v1.PersistentVolumeClaim{"handle": claim}}
	if faults := r.faults(); len(faults) > 0 {
		t.Errorf("before a restore: %+v", faults)
	}
	r.misfit(time.Now().Add(time.Hour))
	if faults := r.faults(); len(faults) != 1 || faults[0].Volume != "pvc-uid" || faults[0].Response == "" {
		t.Errorf("after a restore: %+v", faults)
	}
}

func TestRestoreWaitsUntilDisksAreUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, tc := range map[string]struct{ used, want time.Duration }{
			"used soon": {time.Second, time.Second}, "used too late": {time.Hour, usedWithin},
		} {
			ctx, stop := context.WithCancel(t.Context())
			r := returning{stop: stop}
			r.all.Go(func() { sandbox.Pause(ctx, tc.used) })
			began := time.Now()
			if r.end(usedWithin); time.Since(began) != tc.want {
				t.Errorf("%s: the restore waited %s, want %s", name, time.Since(began), tc.want)
			}
		}
	})
}
