// Package holder finds the controller that has to remove a finalizer: its workloads, pods
// and Leases, what its events report, and whether it lives.
//
// A controller is proven gone only if all workloads, pods and Leases were listed. A missing
// right makes it unseen, never gone. A workload of which nothing tells the driver proves
// neither that a sidecar is gone nor its version; the only one that lives counts as alive. The
// standby Lease of pv-controller, which no replica holds, is no sign of life.
package holder

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/families"
)

// Finder finds controllers in one cluster.
type Finder struct {
	Reader   *cluster.Reader
	Commands cluster.Commands
}

// Finding is the observed state of a controller.
type Finding struct {
	State blocker.ControllerState
	// Holder names the controller and its workload, or the holder of its Lease.
	Holder string
	// Since is since when the controller is gone or reports its error, in RFC 3339, or "".
	Since    string
	Evidence []blocker.Evidence
	// Next is the next step for the user.
	Next string
	// StandsBy: replicas run, and wait until a user deletes a Lease, or that of node-terminator runs out.
	StandsBy bool
	// Containers are the containers that run the controller, with images and arguments.
	Containers []Container
}

// Container is a container that runs the controller, as its workload or pod says.
type Container struct {
	// Workload is kind namespace/name of the workload, or of the pod without one.
	Workload string
	Image    string
	Args     []string // command and arguments
	// Serves: something ties the workload to the CSI driver, such as an argument or its Lease.
	Serves bool
	// Guessed: the workload is the only one that may serve the driver, and nothing tells.
	Guessed bool
	// Stopped: the workload wants no replica, and none was seen.
	Stopped bool
}

// Look finds the controller, once. driver is the name of the CSI driver beside which it
// runs, or "".
func (f Finder) Look(ctx context.Context, controller families.Controller, driver string) Finding {
	if controller.InAPIServer {
		return f.apiServer(controller)
	}
	return cluster.Remember(f.Reader, fmt.Sprintf("controller %+v beside %s", controller, driver),
		func(r *cluster.Reader) Finding {
			return Finder{Reader: r, Commands: f.Commands}.look(ctx, controller, driver)
		})
}

func (f Finder) look(ctx context.Context, controller families.Controller, driver string) Finding {
	s := f.sight(ctx, controller, driver)
	finding := Finding{
		State:  blocker.ControllerState{Workload: s.state, Lease: s.leaseState, Uninstalled: s.uninstalled != ""},
		Holder: s.holder(), Evidence: s.evidence(), Since: s.since(), Next: f.next(s), Containers: s.containers(),
		StandsBy: s.standsBy(),
	}
	switch {
	case s.isSwitchedOff():
		finding.State = blocker.ControllerState{Workload: blocker.WorkloadStopped, Lease: blocker.LeaseAbsent}
	case len(s.off) > 0 && !s.isAlive(): // the Lease may be held by a program that has the loop switched off
		finding.State = blocker.ControllerState{Workload: s.state}
	case s.standsBy() && s.standbyEnds() && leaseEnd(*s.standby).After(s.now): // replicas lead again soon
	case s.standby != nil:
		finding.State = besideStandby(s.state, s.leaseState)
	}
	return finding
}

// apiServer returns the finding of a controller in the API server, which has answered.
func (f Finder) apiServer(controller families.Controller) Finding {
	return Finding{
		State:  blocker.ControllerState{Workload: blocker.WorkloadReady, Lease: blocker.LeaseAbsent},
		Holder: controller.Name + " in the API server",
		Evidence: []blocker.Evidence{{Source: blocker.FromWorkload,
			Text: controller.Name + " runs in the API server, which answers"}},
		Next: cluster.Steps("wait: " + controller.Name + " runs in the API server, whose log says more"),
	}
}

// RemovalStep returns the last resort: the removal of one finalizer by hand, as a comment,
// with what is lost; "" if the object does not have the finalizer. It belongs in no step
// while the holder lives or is unseen.
func (f Finder) RemovalStep(object *unstructured.Unstructured, finalizer, loss string) string {
	if !slices.Contains(object.GetFinalizers(), finalizer) {
		return ""
	}
	if loss == "" {
		loss = "what the finalizer protects is not known"
	}
	return cluster.LastResort(loss, f.RemovalCommand(object, finalizer))
}

// RemovalCommand returns the command that removes one finalizer of the object. The API
// server refuses it if the object or its finalizers have changed.
func (f Finder) RemovalCommand(object *unstructured.Unstructured, finalizer string) string {
	return f.removalCommand(object, f.ResourceOf(object), finalizer)
}

func (f Finder) removalCommand(object *unstructured.Unstructured, resource, finalizer string) string {
	path := "/metadata/finalizers/" + strconv.Itoa(slices.Index(object.GetFinalizers(), finalizer))
	type operation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value string `json:"value,omitempty"`
	}
	patch, err := json.Marshal([]operation{
		{"test", "/metadata/uid", string(object.GetUID())}, {"test", path, finalizer}, {Op: "remove", Path: path},
	})
	if err != nil { // texts always have a JSON form
		return ""
	}
	return f.Commands.Kubectl(object.GetNamespace(), "patch", resource, object.GetName(), "--type=json", "-p",
		string(patch))
}

// ResourceOf returns the resource of the object as kubectl takes it, with its group.
func (f Finder) ResourceOf(object *unstructured.Unstructured) string {
	if ref, found := f.Reader.Find(object.GetAPIVersion(), object.GetKind(), object.GetNamespace(),
		object.GetName()); found {
		return ref.Resource.GroupResource().String()
	}
	gvk := object.GroupVersionKind()
	return strings.TrimSuffix(strings.ToLower(gvk.Kind)+"."+gvk.Group, ".")
}
