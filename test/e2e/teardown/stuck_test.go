package teardown

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/pkg/alive"
	core "github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/pkg/teardown/runner"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

const participant = "buckets.example.com/teardown"

// installAlive installs the kind Alive, and creates one.
func (r *rig) installAlive() {
	r.T.Helper()
	r.Must(sandbox.Apply(r.Ctx, r.Plane.RESTConfig(), deploy.Alive), "apply manifests")
	clients, err := runner.Connect(r.Plane.RESTConfig(), nil)
	r.Must(err, "connect")
	content, err := alive.ToUnstructured(alive.New())
	r.Must(err, "encode Alive")
	r.Until("Alive is created", func() bool {
		_, err := clients.Dynamic.Resource(alive.Resource).Create(r.Ctx, content, metav1.CreateOptions{})
		return err == nil
	})
}

// register installs Alive and a participant that never is done.
func (r *rig) register() {
	r.T.Helper()
	r.installAlive()
	clients, err := runner.Connect(r.Plane.RESTConfig(), nil)
	r.Must(err, "connect")
	r.Must(alive.Register(r.Ctx, clients.Dynamic, alive.Participant{Finalizer: participant, Namespace: "default",
		Text: "buckets of the account dev"}), "register")
}

// loseNode creates a node whose kubelet reports no more.
func (r *rig) loseNode() {
	r.T.Helper()
	r.CreateNode(harness.DeadNode, nil)
	_, err := r.Client.CoreV1().Nodes().Patch(r.Ctx, harness.DeadNode, types.MergePatchType, []byte(`{"status":{"conditions":[
		{"type":"Ready","status":"Unknown","reason":"NodeStatusUnknown","lastHeartbeatTime":"2026-01-01T00:00:00Z",
		"lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`), metav1.PatchOptions{}, "status")
	r.Must(err, "lose a node")
}

// Rows 13, 23 and 55, and a load balancer: one of each is stuck, and holds nothing else up.
func TestFourStuckObjectsAreNamed(t *testing.T) {
	r := newRig(t, harness.Setup{Teardown: true})
	r.register()
	r.loseNode()
	refusing := r.WithOwnDriver("refusing.csi.example.com", "--faults=../testdata/refused-deletion.yaml", "")
	refusing.CreateClass()
	refused := (&rig{Session: refusing}).addDynamic("refused", r.Namespace)
	held := r.addDynamic("held", harness.DeleteClass)
	lost := r.createUserOn(harness.DeadNode, "lost", held.name)
	gone := []disk{r.addDynamic("data", harness.DeleteClass), r.addDynamic("used", harness.DeleteClass)}
	r.createUser("living", "used")
	createService(r.Session, "stuck")
	createService(r.Session, "web")
	stuck := awaitService(r.Session, "stuck", "has an address", hasAddress)
	awaitService(r.Session, "web", "has an address", hasAddress)
	r.Must(r.Balancers.SetFaults("[{method: EnsureLoadBalancerDeleted, service: "+r.Namespace+"/stuck, error: in use}]"),
		"set faults")

	document := r.document(r.admin(3, "--confirm="+r.id(), "--timeout=1m", "-o", "json"))
	left := r.remaining(document)
	want := []string{"Volume " + refused.volume, "Volume " + held.volume, "LoadBalancer stuck", "Participant " + participant}
	for _, name := range want {
		if !left[name] {
			t.Errorf("%s is not named", name)
		}
	}
	if len(left) != len(want) {
		t.Errorf("named: %v, want %v", left, want)
	}
	r.expectDisks(gone...)
	r.expectDisks(keep(held))
	r.expectService("web", false)
	r.expectUntouched(lost, stuck)
}

// remaining returns what remains by kind and name. Each has to have a reason.
func (r *rig) remaining(document *core.Document) map[string]bool {
	r.T.Helper()
	left := map[string]bool{}
	for i := range document.Items {
		item := &document.Items[i]
		if item.Fate != core.Remains {
			continue
		}
		name := item.Object.Name
		if item.Kind == core.Participant {
			name = item.ExternalID
		}
		left[string(item.Kind)+" "+name] = true
		if len(item.Blockers) == 0 {
			r.T.Errorf("%s %s remains, and nothing says why", item.Kind, item.Object.Name)
		}
	}
	return left
}

// expectUntouched checks that nobody took the finalizers of others off, and the pod was not forced away.
func (r *rig) expectUntouched(lost *v1.Pod, stuck *v1.Service) {
	r.T.Helper()
	pod, err := r.Client.CoreV1().Pods(r.Namespace).Get(r.Ctx, lost.Name, metav1.GetOptions{})
	r.Must(err, "read the pod of the dead node")
	if pod.UID != lost.UID || pod.DeletionTimestamp == nil {
		r.T.Errorf("the pod of the dead node is another, or was not deleted: %v", pod.DeletionTimestamp)
	}
	service, err := r.Client.CoreV1().Services(r.Namespace).Get(r.Ctx, stuck.Name, metav1.GetOptions{})
	r.Must(err, "read the stuck Service")
	if len(service.Finalizers) != len(stuck.Finalizers) {
		r.T.Errorf("the stuck Service has finalizers %q, had %q", service.Finalizers, stuck.Finalizers)
	}
}
