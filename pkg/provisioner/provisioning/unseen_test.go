package provisioning

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"
)

// etcd is restored to the version that the cache shows: no event follows the lost write.
func TestClaimOfUnseenWriteIsReadAfterMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newEchoClient(false)
		client.PrependReactor("list", "persistentvolumeclaims",
			func(action clienttesting.Action) (bool, runtime.Object, error) {
				_, list, err := clienttesting.ObjectReaction(client.Tracker())(action)
				list.(*v1.PersistentVolumeClaimList).Items[0].Spec.VolumeName = "v"
				return true, list, err
			})
		c := newEcho(t, client, &echo{known: func(int) bool { return false }}, record.NewFakeRecorder(10))
		working, end := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { c.Run(working, 1) })
		claim, _ := c.claimOf("ns/claim/uid")
		written := claim.DeepCopy()
		written.ResourceVersion = "5000"
		c.versions.RecordWrite(written)
		client.ClearActions()
		<-time.After(3 * time.Minute)
		synctest.Wait()
		if !slices.ContainsFunc(client.Actions(),
			func(a clienttesting.Action) bool { return a.Matches("get", "persistentvolumeclaims") }) {
			t.Errorf("requests %v, want a read of the claim", client.Actions())
		}
		end()
		running.Wait()
	})
}
