package holder_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/termination"
	"github.com/exeunt-io/exeunt/pkg/why/cluster/clustertest"
	"github.com/exeunt-io/exeunt/pkg/why/families"
	"github.com/exeunt-io/exeunt/pkg/why/holder"
)

const loopsOff = "--controllers=*,-persistentvolume-binder-controller,-persistentvolume-protection-controller,-persistentvolumeclaim-protection-controller"

// loopsPod is kube-controller-manager on a node.
func loopsPod(flag string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-controller-manager-node-1"},
		Spec: corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{
			{Name: "kube-controller-manager", Image: "r/kube-controller-manager:v1.36.3", Command: []string{"kube-controller-manager", flag}},
		}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
}

// pvController is the Deployment with replicas that are ready.
func pvController(replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app.kubernetes.io/name": "pv-controller"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "exeunt-system", Name: "pv-controller"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Image: "r/exeunt/pv-controller:v1"}}}},
		},
		Status: appsv1.DeploymentStatus{ReadyReplicas: replicas},
	}
}

func heldLease(name, by string) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name, CreationTimestamp: metav1.Now()},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &by, LeaseDurationSeconds: ptr.To[int32](60),
			RenewTime: ptr.To(metav1.NowMicro())},
	}
}

// standbyLease is that of deploy/, applied a while ago.
func standbyLease(t *testing.T, age time.Duration) *coordinationv1.Lease {
	t.Helper()
	text, err := deploy.Standby.ReadFile("pv-controller/standby/lease.yaml")
	if err != nil {
		t.Fatal(err)
	}
	lease := &coordinationv1.Lease{}
	if err := yaml.Unmarshal(text, lease); err != nil {
		t.Fatal(err)
	}
	lease.CreationTimestamp = metav1.NewTime(time.Now().Add(-age))
	return lease
}

// With the loops off, nobody removes pvc-protection until the standby Lease is deleted.
func TestStandbyLeaseIsNoSignOfLife(t *testing.T) {
	const day = 24 * time.Hour
	leader := heldLease("kube-controller-manager", "node-1_u")
	standby := standbyLease(t, time.Hour)
	for name, tc := range map[string]struct {
		pods    []metav1.Object
		ours    int32
		leases  []metav1.Object
		verdict blocker.Verdict
		release bool // the next step is to delete the Lease
	}{
		"loops off":                        {[]metav1.Object{loopsPod(loopsOff)}, 2, []metav1.Object{leader, standby}, blocker.Stuck, true},
		"loops off, the Lease has run out": {[]metav1.Object{loopsPod(loopsOff)}, 2, []metav1.Object{leader, standbyLease(t, 30*day)}, blocker.Stuck, true},
		"loops off, a replica leads": {[]metav1.Object{loopsPod(loopsOff)}, 2,
			[]metav1.Object{leader, heldLease("pv-controller", "pv-controller-5f-x_u_exeunt")}, blocker.Waiting, false},
		"loops off, another Lease is led": {[]metav1.Object{loopsPod(loopsOff)}, 2,
			[]metav1.Object{leader, standby, inNamespace("elsewhere",
				heldLease("pv-controller", "pv-controller-5f-x_u_exeunt"))}, blocker.Waiting, false},
		"loops off, pv-controller stopped":   {[]metav1.Object{loopsPod(loopsOff)}, 0, []metav1.Object{leader, standby}, blocker.Stuck, false},
		"loops on":                           {[]metav1.Object{loopsPod("--controllers=*")}, 2, []metav1.Object{leader, standby}, blocker.Waiting, false},
		"loops of a process without a pod":   {nil, 2, []metav1.Object{leader, standby}, blocker.Unknown, true},
		"loops that nothing shows":           {nil, 2, []metav1.Object{standby}, blocker.Unknown, true},
		"a process without a pod, no switch": {nil, 2, []metav1.Object{leader, heldLease("pv-controller", "pv-controller-5f-x_u_exeunt")}, blocker.Waiting, false},
	} {
		t.Run(name, func(t *testing.T) {
			objects := clustertest.Objects{"pods": tc.pods, "leases": tc.leases, "deployments": {pvController(tc.ours)}}
			got := judgeClaim(t, objects)
			if got.Verdict != tc.verdict {
				t.Errorf("verdict %v (%v), want %v: %v", got.Verdict, got.Reason, tc.verdict, got.Evidence)
			}
			if release := strings.Contains(got.Next,
				"kubectl delete lease pv-controller -n kube-system"); release != tc.release {
				t.Errorf("next step deletes the Lease: %t, want %t:\n%s", release, tc.release, got.Next)
			}
			if tc.release && strings.Contains(got.Next, "last resort") {
				t.Errorf("the finalizer need not be removed by hand:\n%s", got.Next)
			}
			if evidence := fmt.Sprint(got.Evidence); tc.release && !strings.Contains(evidence, "which is no replica") {
				t.Errorf("the evidence lacks the Lease: %s", evidence)
			}
		})
	}
}

func inNamespace(namespace string, lease *coordinationv1.Lease) *coordinationv1.Lease {
	lease.Namespace = namespace
	return lease
}

// judgeClaim judges pvc-protection of a claim that no pod uses.
func judgeClaim(t *testing.T, objects clustertest.Objects) blocker.Blocker {
	t.Helper()
	claim := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "PersistentVolumeClaim",
		"metadata": map[string]any{"name": "c", "namespace": "n", "uid": "u", "finalizers": []any{string(finalizer.ClaimProtection)}},
	}}
	family, known := families.Find(string(finalizer.ClaimProtection), "PersistentVolumeClaim", "")
	if !known {
		t.Fatal("pvc-protection is in no family")
	}
	return holder.Finder{Reader: clustertest.NewReader(t, objects.ServeHTTP)}.Judge(t.Context(), claim,
		string(finalizer.ClaimProtection), family, "")
}

// "exeunt rollback nodes" takes the Lease of node-terminator for minutes, whatever loops of others run.
func TestStandbyLeaseOfNodeTerminatorRunsOut(t *testing.T) {
	deployment := pvController(2)
	deployment.Name, deployment.Spec.Template.Spec.Containers[0].Image = "node-terminator", "r/exeunt/node-terminator:v1"
	objects := clustertest.Objects{"deployments": {deployment}, "leases": {heldLease("node-terminator", "standby")}}
	controller := families.Named(termination.Finalizer)[0].Controller
	got := holder.Finder{Reader: clustertest.NewReader(t, objects.ServeHTTP)}.Look(t.Context(), controller, "")
	if said := fmt.Sprint(got.Evidence, got.Next); !got.StandsBy || strings.Contains(said, "loops") ||
		!strings.Contains(got.Next, "kubectl delete lease node-terminator -n kube-system") || !strings.Contains(said, "runs out") {
		t.Errorf("%+v", got)
	}
	if reason, verdict := blocker.JudgeController(got.State); reason != blocker.ControllerActs || verdict != blocker.Waiting {
		t.Errorf("%v, %v, want that it acts", reason, verdict)
	}
	deployment.Spec.Replicas, deployment.Status.ReadyReplicas = ptr.To[int32](0), 0
	got = holder.Finder{Reader: clustertest.NewReader(t, objects.ServeHTTP)}.Look(t.Context(), controller, "")
	if reason, _ := blocker.JudgeController(got.State); reason != blocker.ControllerGone {
		t.Errorf("stopped: %v", reason)
	}
}
