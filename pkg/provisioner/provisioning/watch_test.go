package provisioning

import (
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/provision"
)

func TestVolumeEventEnqueuesClaimWithEntry(t *testing.T) {
	for name, tc := range map[string]struct {
		entry provision.Entry
		ref   *v1.ObjectReference
		want  bool
	}{
		"entry":                   {provision.Durable, &v1.ObjectReference{UID: "uid"}, true},
		"no entry":                {provision.NoEntry, &v1.ObjectReference{UID: "uid"}, false},
		"volume of another claim": {provision.Durable, &v1.ObjectReference{UID: "another"}, false},
		"volume without a claim":  {provision.Durable, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := newObserver(t)
			c.loop = controller.NewLoop("claims", controller.Backoff{}, c.Reconcile)
			steps := c.loop.Step()
			c.memory.update(subject{uid: "uid", key: flowClaim}, "pvc-uid", func(r *claimRecord) { r.entry.state = tc.entry })
			volume := withHandle("h")
			volume.Name, volume.Spec.ClaimRef = "pvc-uid", tc.ref
			key := c.recordVolumeEvent(volume)
			if due, _ := steps.Keys(); slices.Contains(due, flowClaim) != tc.want || key != flowClaim {
				t.Errorf("enqueued %v, key %q; want the claim enqueued: %v", due, key, tc.want)
			}
		})
	}
}
