package teardown

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/pkg/alive"
	core "github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// controlled is a cluster with alive-controller.
type controlled struct {
	*harness.Session
	alives  dynamic.ResourceInterface
	process *sandbox.Process
	// begun counts the processes, which have logs of their own.
	begun int
}

// newControlled starts a cluster with the manifests and alive-controller.
func newControlled(t *testing.T, setup harness.Setup, manifests ...fs.FS) *controlled {
	t.Helper()
	t.Parallel()
	c := &controlled{Session: harness.Own(t, setup, harness.Within(3*time.Minute))}
	objects, err := dynamic.NewForConfig(c.Plane.RESTConfig())
	c.Must(err, "make client")
	c.alives = objects.Resource(alive.Resource)
	for _, files := range manifests {
		c.apply(files)
	}
	c.begin()
	return c
}

func (c *controlled) apply(files fs.FS) {
	c.T.Helper()
	c.Must(sandbox.Apply(c.Ctx, c.Plane.RESTConfig(), files), "apply manifests")
}

// begin starts alive-controller.
func (c *controlled) begin(args ...string) {
	c.T.Helper()
	c.begun++
	var err error
	c.process, err = c.Plane.StartAliveController(c.Ctx, sandbox.Controller{
		Name: fmt.Sprintf("alive-controller-%d", c.begun), Args: args})
	c.Must(err, "start alive-controller")
	c.Add(c.process)
}

// stopController ends alive-controller as a kubelet does.
func (c *controlled) stopController() {
	c.T.Helper()
	c.ExpectEnd(c.process)
	c.Must(c.process.Stop(c.Ctx), "stop alive-controller")
}

// get returns Alive, nil if there is none.
func (c *controlled) get() *alive.Alive {
	c.T.Helper()
	object, err := c.alives.Get(c.Ctx, alive.Name, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	one, err := alive.FromUnstructured(object)
	c.Must(err, "read Alive")
	return one
}

// await waits until Alive is as wanted.
func (c *controlled) await(what string, holds func(*alive.Alive) bool) *alive.Alive {
	c.T.Helper()
	var one *alive.Alive
	c.Until("Alive "+what, func() bool {
		one = c.get()
		return one != nil && holds(one)
	})
	return one
}

// permit writes what a person writes with kubectl patch.
func (c *controlled) permit(timeout string) {
	c.T.Helper()
	system, err := c.Client.CoreV1().Namespaces().Get(c.Ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	c.Must(err, "read the ID of the cluster")
	spec := map[string]any{"protected": false, "confirm": system.UID, "confirmedAt": time.Now().UTC().Format(time.RFC3339)}
	if timeout != "" {
		spec["timeout"] = timeout
	}
	c.Must(c.patch(map[string]any{"spec": spec}), "permit the teardown")
}

func (c *controlled) patch(change map[string]any) error {
	c.T.Helper()
	body, err := json.Marshal(change)
	c.Must(err, "encode patch")
	_, err = c.alives.Patch(c.Ctx, alive.Name, types.MergePatchType, body, metav1.PatchOptions{})
	return err
}

func isReady(one *alive.Alive) bool {
	return meta.IsStatusConditionTrue(one.Status.Conditions, alive.ConditionReady)
}

func phaseIs(phase alive.Phase, reason string) func(*alive.Alive) bool {
	return func(one *alive.Alive) bool { return one.Status.Phase == phase && one.Status.Reason == reason }
}

// The three commands of the issue: the right, the permission, the deletion.
func TestArmedControllerTearsTheClusterDown(t *testing.T) {
	c := newControlled(t, stock, deploy.Alive, deploy.AliveRights)
	c.CreateClaim("data", harness.DeleteClass)
	c.CreateClaim("archive", harness.RetainClass)
	deleted, kept := c.AwaitBound("data"), c.AwaitBound("archive")
	createService(c.Session, "web")
	service := awaitService(c.Session, "web", "has an address", hasAddress)
	c.await("is protected", phaseIs(alive.Protected, alive.ReasonProtected))
	c.permit("")
	one := c.await("lacks the controller's rights", phaseIs(alive.Armed, alive.ReasonRightsMissing))
	ready := meta.FindStatusCondition(one.Status.Conditions, alive.ConditionReady)
	if ready == nil || ready.Status != metav1.ConditionFalse || ready.Reason != alive.ReasonRightsMissing {
		t.Errorf("without the right Ready is %+v", ready)
	}
	c.apply(deploy.AliveArmed)
	c.await("is ready", isReady)
	c.Must(c.alives.Delete(c.Ctx, alive.Name, metav1.DeleteOptions{}), "delete Alive")
	c.Until("Alive is gone", func() bool { return c.get() == nil })
	if c.IsStored(harness.Handle(deleted)) || !c.IsStored(harness.Handle(kept)) {
		t.Errorf("deletable disk stored: %t, kept disk stored: %t", c.IsStored(harness.Handle(deleted)),
			c.IsStored(harness.Handle(kept)))
	}
	if _, exists := balancerOf(c.Session, service); exists {
		t.Error("the load balancer is left")
	}
	if err := sandbox.Refused(c.Plane.AuditLog, sandbox.AliveControllerAccount.Name()); err != nil {
		t.Errorf("a right is missing: %v", err)
	}
}

// A program that is not armed leaves the work, and the status, to the command.
func TestCommandWorksBesideUnarmedController(t *testing.T) {
	c := newControlled(t, stock, deploy.Alive, deploy.AliveRights)
	c.CreateClaim("data", harness.DeleteClass)
	deleted := c.AwaitBound("data")
	c.await("is protected", phaseIs(alive.Protected, alive.ReasonProtected))
	since := len(c.audited())
	rigOf(c.Session).mustComplete()
	if c.IsStored(harness.Handle(deleted)) {
		t.Error("the disk is left")
	}
	if writes := c.requests(since)["patch alives/cluster"]; writes > 1 {
		t.Errorf("the program wrote the status %d times", writes)
	}
}

// A permission ends: what nobody has deleted in time is as before, and a deletion changes nothing.
func TestForgottenPermissionChangesNothing(t *testing.T) {
	c := newControlled(t, stock, deploy.Alive, deploy.AliveRights, deploy.AliveArmed)
	c.fill(3)
	c.await("is protected", phaseIs(alive.Protected, alive.ReasonProtected))
	before := c.versions()
	c.permit("1m")
	c.await("is ready", isReady)
	c.await("has expired", phaseIs(alive.Protected, alive.ReasonExpired))
	c.expectUntouched("the end of the permission", before)
	c.Must(c.alives.Delete(c.Ctx, alive.Name, metav1.DeleteOptions{}), "delete Alive")
	c.await("is stopped", phaseIs(alive.Stopped, alive.ReasonExpired))
	c.expectUntouched("a late deletion", before)
	policies, err := c.Client.AdmissionregistrationV1().ValidatingAdmissionPolicies().List(c.Ctx, metav1.ListOptions{})
	c.Must(err, "list policies")
	for i := range policies.Items {
		if policies.Items[i].Name == core.FreezeName {
			t.Error("the freeze is written")
		}
	}
}
