package cli

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/blocker"
)

// answers are what every version says, where no driver and no control plane is seen.
var answers = map[string]struct {
	verdict blocker.Verdict
	code    int
	roots   []blocker.Reason // nil: no blockers
}{
	"pv/bound":      {blocker.Waiting, 2, []blocker.Reason{blocker.PodUsesClaim}},
	"pv/released":   {blocker.Unknown, 2, []blocker.Reason{blocker.ControllerUnseen}},
	"pv/kept":       {blocker.None, 0, []blocker.Reason{blocker.PolicyRetain}},
	"pv/none":       {blocker.Gone, 0, nil},
	"pvc/used":      {blocker.Waiting, 2, []blocker.Reason{blocker.PodUsesClaim}},
	"pod/ends":      {blocker.Waiting, 2, []blocker.Reason{blocker.GracePeriod}},
	"cm/held":       {blocker.Unknown, 2, []blocker.Reason{blocker.UnknownFinalizer}},
	"ns/terminates": {blocker.Unknown, 2, []blocker.Reason{blocker.UnknownFinalizer}},
	"ns/lab":        {blocker.None, 0, nil},
}

func TestAllVersionsGiveSameAnswers(t *testing.T) {
	for _, version := range versions() {
		t.Run(version, func(t *testing.T) {
			l := open(t, version)
			l.furnish()
			for object, want := range answers {
				report, code := l.why(object)
				var roots []blocker.Reason
				for root := range blocker.Roots(report.Blockers) {
					roots = append(roots, root.Reason)
				}
				for _, reason := range want.roots {
					if !slices.Contains(roots, reason) {
						t.Errorf("the roots of %s are %v, want %v, in %+v", object, roots, reason, report)
					}
				}
				if report.Verdict != want.verdict || code != want.code {
					t.Errorf("%s is %v with exit code %d, want %v and %d, in %+v", object, report.Verdict, code, want.verdict,
						want.code, report)
				}
			}
			l.expectSurvey()
		})
	}
}

// furnish creates the objects of answers.
func (l *whyServer) furnish() {
	l.t.Helper()
	l.createVolume("released", corev1.VolumeReleased, corev1.PersistentVolumeReclaimDelete,
		&corev1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: l.namespace, Name: "former", UID: "1"},
		"external-provisioner.volume.kubernetes.io/finalizer")
	l.createVolume("kept", corev1.VolumeReleased, corev1.PersistentVolumeReclaimRetain, nil)
	claim := l.createClaim("used")
	l.createVolume("bound", corev1.VolumeBound, corev1.PersistentVolumeReclaimDelete,
		&corev1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: l.namespace, Name: claim.Name, UID: claim.UID},
		"external-provisioner.volume.kubernetes.io/finalizer")
	l.deleteVolume("released")
	l.deleteVolume("bound")
	l.createNode()
	l.createPod("ends", "")
	l.createPod("uses", "used")
	grace := int64(300)
	l.must(l.client.CoreV1().Pods(l.namespace).Delete(l.ctx, "ends", metav1.DeleteOptions{GracePeriodSeconds: &grace}),
		"delete pod")
	l.must(l.client.CoreV1().PersistentVolumeClaims(l.namespace).Delete(l.ctx, "used", metav1.DeleteOptions{}),
		"delete claim")
	l.createConfig("held", "example.com/held")
	l.terminateNamespace("terminates")
}

// terminateNamespace creates a namespace that waits for one ConfigMap.
func (l *whyServer) terminateNamespace(name string) {
	l.t.Helper()
	_, err := l.client.CoreV1().Namespaces().Create(l.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}},
		metav1.CreateOptions{})
	l.must(err, "create namespace")
	inside := *l
	inside.namespace = name
	inside.createConfig("held", "example.com/held")
	l.must(l.client.CoreV1().Namespaces().Delete(l.ctx, name, metav1.DeleteOptions{}), "delete namespace")
}

// createNode creates a Node that reports that it is ready.
func (l *whyServer) createNode() {
	l.t.Helper()
	node, err := l.client.CoreV1().Nodes().Create(l.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}},
		metav1.CreateOptions{})
	l.must(err, "create node")
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue,
		LastHeartbeatTime: metav1.Now()}}
	_, err = l.client.CoreV1().Nodes().UpdateStatus(l.ctx, node, metav1.UpdateOptions{})
	l.must(err, "set conditions of the node")
}

func (l *whyServer) expectSurvey() {
	l.t.Helper()
	want := []string{
		"ConfigMap lab/held", "ConfigMap terminates/held", "Namespace terminates", "PersistentVolume bound",
		"PersistentVolume released", "PersistentVolumeClaim lab/used", "Pod lab/ends",
	}
	if names, code := l.all("--all", "--older-than=0s"); !slices.Equal(names, want) || code != 2 {
		l.t.Errorf("why --all names %q with exit code %d, want %q and 2", names, code, want)
	}
	inside := []string{"ConfigMap lab/held", "PersistentVolume bound", "PersistentVolume released",
		"PersistentVolumeClaim lab/used", "Pod lab/ends"}
	if names, _ := l.all("--all", "--older-than=0s", "-n", "lab"); !slices.Equal(names, inside) {
		l.t.Errorf("why --all -n lab names %q, want %q", names, inside)
	}
	if names, code := l.all("-A", "--older-than=1h"); len(names) > 0 || code != 0 {
		l.t.Errorf("why -A --older-than=1h names %q with exit code %d, want none and 0", names, code)
	}
}
