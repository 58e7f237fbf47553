package teardown

import (
	"context"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/record"

	"github.com/exeunt-io/exeunt/pkg/alive"
	core "github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/pkg/teardown/runner"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// stock are the loops of kube-controller-manager and upstream's csi-provisioner.
var stock = harness.Setup{Teardown: true, UpstreamLoops: true, UpstreamSidecar: true}

// rig is a cluster to be torn down.
type rig struct {
	*harness.Session
	waits runner.Waits
	// events are those of the last runner.
	events *record.FakeRecorder
}

// newRig starts a cluster of a parallel test, whose pods end as a kubelet ends them.
func newRig(t *testing.T, setup harness.Setup) *rig {
	t.Helper()
	t.Parallel()
	return rigOf(harness.Own(t, setup, harness.Within(2*time.Minute)))
}

func rigOf(s *harness.Session) *rig {
	waits := runner.DefaultWaits()
	waits.Quiet, waits.Request, waits.Status, waits.Retry = time.Second, 5*time.Second, time.Second, 200*time.Millisecond
	waits.Probe, waits.MaxRetry, waits.Check = 100*time.Millisecond, 2*time.Second, time.Second
	waits.Lease, waits.Renew, waits.LeaseRetry = 7*time.Second, 2*time.Second, 300*time.Millisecond
	return &rig{Session: s, waits: waits}
}

// config returns the configuration of a runner that a command starts.
func (r *rig) config() runner.Config {
	r.T.Helper()
	return r.configFor(r.Plane.RESTConfig())
}

func (r *rig) configFor(config *rest.Config) runner.Config {
	r.T.Helper()
	clients, err := runner.Connect(config, nil)
	r.Must(err, "connect")
	namespace, err := r.Client.CoreV1().Namespaces().Get(r.Ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	r.Must(err, "read the ID of the cluster")
	r.events = record.NewFakeRecorder(1000)
	return runner.Config{Clients: clients, Waits: r.waits, Cluster: namespace.UID, Agent: "exeunt-teardown", Command: true,
		Check:    func(context.Context, *alive.Alive) ([]core.Problem, error) { return nil, nil },
		Watchdog: leaderelection.NewLeaderHealthzAdaptor(time.Minute), Recorder: r.events,
		Follow: func(p runner.Progress) { r.T.Logf("%s %s %s %v", p.Phase, p.Reason, p.Message, p.Left) }}
}

// tearDown runs the command to its end.
func (r *rig) tearDown(ctx context.Context, change ...func(*runner.Config)) (*runner.Outcome, error) {
	r.T.Helper()
	config := r.config()
	for _, f := range change {
		f(&config)
	}
	return runner.New(config).Teardown(ctx, runner.Word{Timeout: time.Hour})
}

// mustComplete runs the command, which has to complete.
func (r *rig) mustComplete(change ...func(*runner.Config)) {
	r.T.Helper()
	outcome, err := r.tearDown(r.Ctx, change...)
	if err != nil || outcome.Phase != core.Complete {
		r.T.Fatalf("the teardown ended with %+v, %v; the logs are in %s", outcome, err, r.Dir)
	}
}

// createUser creates a pod on a living node that uses the claims.
func (r *rig) createUser(name string, claims ...string) *v1.Pod {
	r.T.Helper()
	return r.createUserOn("node", name, claims...)
}

// createUserOn creates such a pod on the node.
func (r *rig) createUserOn(node, name string, claims ...string) *v1.Pod {
	r.T.Helper()
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.PodSpec{NodeName: node,
		TerminationGracePeriodSeconds: new(int64(1)), Containers: []v1.Container{{Name: "main", Image: "image"}}}}
	for _, claim := range claims {
		pod.Spec.Volumes = append(pod.Spec.Volumes, v1.Volume{Name: claim, VolumeSource: v1.VolumeSource{
			PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}})
	}
	created, err := r.Client.CoreV1().Pods(r.Namespace).Create(r.Ctx, pod, metav1.CreateOptions{})
	r.Must(err, "create pod")
	return created
}
