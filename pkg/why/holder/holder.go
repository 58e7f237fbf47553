// Package holder finds the controller that has to remove a finalizer: its workloads, pods
// and Leases, what its events report, and whether it lives.
package holder

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/blocker/families"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// Finder finds controllers in one cluster.
type Finder struct {
	Reader   *cluster.Reader
	Commands cluster.Commands
}

// Finding is what was seen of a controller.
type Finding struct {
	State blocker.ControllerState
	// Holder names the controller and its workload, or the holder of its Lease.
	Holder string
	// Since is since when the controller is gone or reports its error, in RFC 3339, or "".
	Since    string
	Evidence []blocker.Evidence
	// Next is the next step for the user.
	Next string
	// Containers are the containers that run the controller, with images and arguments.
	Containers []Container
}

// Container is a container that runs the controller, as its workload or pod says.
type Container struct {
	// Workload is kind namespace/name of the workload, or of the pod without one.
	Workload string
	Image    string
	Args     []string // command and arguments
}

// Look finds the controller. driver is the name of the CSI driver beside which it runs, or "".
func (f Finder) Look(ctx context.Context, controller families.Controller, driver string) Finding {
	return Finding{Holder: controller.Name}
}

// Judge returns the blocker of a finalizer that the controller removes from the object.
func (f Finder) Judge(ctx context.Context, object *unstructured.Unstructured, finalizer string, family families.Family, driver string) blocker.Blocker {
	finding := f.Look(ctx, family.Controller, driver)
	reason, verdict := blocker.JudgeController(finding.State)
	return blocker.Blocker{
		Object: cluster.ObjectOf(object), Finalizer: finalizer, Reason: reason, Verdict: verdict,
		Holder: finding.Holder, Since: finding.Since, Evidence: finding.Evidence, Next: finding.Next,
	}
}

// Attribute returns the blocker of a finalizer that is not in the table.
func (f Finder) Attribute(_ context.Context, object *unstructured.Unstructured, finalizer string) blocker.Blocker {
	return blocker.Blocker{
		Object: cluster.ObjectOf(object), Finalizer: finalizer, Reason: blocker.UnknownFinalizer, Verdict: blocker.Unknown,
	}
}
