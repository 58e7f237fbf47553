package teardown

import (
	"encoding/json"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/pkg/alive"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// later is a version of the kind that alive-controller does not know.
var later = schema.GroupVersionResource{Group: alive.Group, Version: "v2", Resource: alive.Resource.Resource}

// serve stores Alive as the later version, and serves the version that the program knows or not.
func (c *controlled) serve(known bool) {
	c.T.Helper()
	crds := c.dynamic(definitions)
	crd, err := crds.Get(c.Ctx, alive.CRD, metav1.GetOptions{})
	c.Must(err, "read the CRD")
	versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
	c.Must(err, "read versions")
	first := versions[0].(map[string]any)
	second := (&unstructured.Unstructured{Object: first}).DeepCopy().Object
	first["served"], first["storage"] = known, false
	second["name"], second["served"], second["storage"] = later.Version, true, true
	body, err := json.Marshal(map[string]any{"spec": map[string]any{"versions": []any{first, second}}})
	c.Must(err, "encode patch")
	_, err = crds.Patch(c.Ctx, alive.CRD, types.MergePatchType, body, metav1.PatchOptions{})
	c.Must(err, "change versions")
}

// The kind is served in an unknown version only, and the API server restarts. The program deletes nothing until it can read
// what a person has permitted, and goes on then.
func TestUnknownVersionAndRestartDeleteNothing(t *testing.T) {
	setup := stock
	setup.Restarts = true
	c := newControlled(t, setup, deploy.Alive, deploy.AliveRights, deploy.AliveArmed)
	c.fill(2)
	volume := c.AwaitBound("data-0")
	c.await("is protected", phaseIs(alive.Protected, alive.ReasonProtected))
	before := c.versions()
	c.serve(false)
	c.alives = c.dynamic(later)
	c.Until("the later version is served", func() bool {
		_, err := c.alives.Get(c.Ctx, alive.Name, metav1.GetOptions{})
		return err == nil
	})
	c.AwaitLog(c.process, "Failed to watch")
	c.permit("")
	c.Must(c.alives.Delete(c.Ctx, alive.Name, metav1.DeleteOptions{}), "delete Alive")
	c.Must(c.Plane.Restart(c.Ctx, func() error { return nil }), "restart the API server")
	c.Until("the API server answers", func() bool {
		_, err := c.alives.Get(c.Ctx, alive.Name, metav1.GetOptions{})
		return err == nil
	})
	since := len(c.audited())
	c.Until("the program asks again", func() bool { return c.requests(since)["watch alives/cluster"] > 0 })
	c.expectUntouched("a permission that the program cannot read", before)
	c.serve(true)
	began := time.Now()
	c.Until("the disk is deleted", func() bool { return !c.IsStored(harness.Handle(volume)) })
	t.Logf("the program went on within %s", time.Since(began).Round(time.Second))
}
