package harness

import (
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// DriverLease is the leader lease of the mock driver's provisioner. Upstream's sidecar
// derives the same name.
const DriverLease = "csimock-exeunt-io"

// AwaitLeader waits until the lease has another holder than before, and returns the holder.
func (s *Session) AwaitLeader(before string) string {
	s.T.Helper()
	source := cache.NewListWatchFromClient(s.Client.CoordinationV1().RESTClient(), "leases", deploy.Namespace,
		fields.OneTermEqualSelector("metadata.name", DriverLease))
	last, err := watchtools.UntilWithSync(s.Ctx, source, &coordinationv1.Lease{}, nil,
		func(event watch.Event) (bool, error) {
			lease := event.Object.(*coordinationv1.Lease)
			holder := ptr.Deref(lease.Spec.HolderIdentity, "")
			return holder != "" && holder != before && lease.Labels["team"] == "storage", nil
		})
	s.Must(err, fmt.Sprintf("wait until the lease has another holder than %q", before))
	return ptr.Deref(last.Object.(*coordinationv1.Lease).Spec.HolderIdentity, "")
}

// Leader returns the running replica of the pv-controller that leads.
func (s *Session) Leader() *sandbox.Process {
	s.T.Helper()
	for _, process := range s.Processes() {
		select {
		case <-process.Done():
			continue
		default:
		}
		if s.LogContains(process, `"Working" logger="pv-controller"`) {
			return process
		}
	}
	s.T.Fatal("no replica leads")
	return nil
}
