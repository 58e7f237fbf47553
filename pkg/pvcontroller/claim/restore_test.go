package claim

import (
	"errors"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/exeunt-io/exeunt/pkg/controller"
)

// etcd was restored from a backup. The cache of claims is current, the cache of volumes is not: it shows what was
// written after the backup.
func TestClaimIsNotBoundToVolumeOfCacheOnly(t *testing.T) {
	wasBound := func(v *v1.PersistentVolume) {
		referringTo("claim", "claim")(v)
		v.ResourceVersion, v.Status.Phase = "900", v1.VolumeBound
	}
	for name, tc := range map[string]struct {
		claim *v1.PersistentVolumeClaim
		live  []runtime.Object
		want  error
	}{
		"the volume is free again":          {pendingClaim(), []runtime.Object{free("v", "1")}, controller.ErrStaleCache},
		"the volume is another claim's":     {pendingClaim(), []runtime.Object{free("v", "1", referringTo("other", "other"))}, controller.ErrStaleCache},
		"the volume is gone":                {pendingClaim(), nil, controller.ErrStaleCache},
		"the named volume is another's":     {pendingClaim(naming("v")), []runtime.Object{free("v", "1", referringTo("other", "other"))}, nil},
		"the named volume is gone":          {pendingClaim(naming("v")), nil, nil},
		"the named volume is too small now": {pendingClaim(naming("v")), []runtime.Object{free("v", "1", inClass("other"))}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := newController(t, append(tc.live, tc.claim)...)
			show(t, c, free("v", "1", wasBound))
			if err := c.Reconcile(t.Context(), "ns/claim"); !errors.Is(err, tc.want) {
				t.Errorf("Reconcile() = %v, want %v", err, tc.want)
			}
			if got := requests(c); !slices.Equal(got, []string{"get persistentvolumes"}) {
				t.Errorf("requests %q, want one read of the volume", got)
			}
		})
	}
}

// The phase Bound was written in an earlier pass, or by another program.
func TestClaimIsBoundToVolumeThatWasRead(t *testing.T) {
	bound := free("v", "1", referringTo("claim", "claim"), phaseOfVolume(v1.VolumeBound))
	for name, claim := range map[string]*v1.PersistentVolumeClaim{"unnamed": pendingClaim(),
		"named": pendingClaim(naming("v"))} {
		t.Run(name, func(t *testing.T) {
			c, _ := newController(t, bound, claim)
			if now := reconcile(t, c); now.Spec.VolumeName != "v" || !bindCompleted(now) || now.Status.Phase != v1.ClaimBound {
				t.Errorf("the claim names %q and is %s", now.Spec.VolumeName, now.Status.Phase)
			}
		})
	}
}

// A volume that was written in this pass is not read.
func TestUsualBindingReadsNoVolume(t *testing.T) {
	c, _ := newController(t, free("v", "1"), pendingClaim())
	if err := c.Reconcile(t.Context(), "ns/claim"); err != nil {
		t.Fatal(err)
	}
	for _, action := range c.Client.(*fake.Clientset).Actions() {
		if action.GetVerb() == "get" {
			t.Errorf("%s %s", action.GetVerb(), action.GetResource().Resource)
		}
	}
}
