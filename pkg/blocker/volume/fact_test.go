package volume

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestRunsPerNode(t *testing.T) {
	for arg, want := range map[string]bool{
		"--node-deployment": true, "-node-deployment": true, "--node-deployment=true": true, "--node-deployment=1": true,
		"--node-deployment=false": false, "--node-deployment=x": false, "--node-deployment-base-delay=20s": false,
		"node-deployment": false,
	} {
		if got := (Program{Args: []string{"/provisioner", arg, "--v=5"}}).RunsPerNode(); got != want {
			t.Errorf("%s: %v, want %v", arg, got, want)
		}
	}
}

func TestNodeOf(t *testing.T) {
	node := func(name string, ready corev1.ConditionStatus) corev1.Node {
		return corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{corev1.LabelHostname: name}},
			Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}},
		}
	}
	own := &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn,
			Values: []string{"own"}}},
	}}}}
	other := node("other", corev1.ConditionTrue)
	for name, tc := range map[string]struct {
		affinity *corev1.VolumeNodeAffinity
		nodes    []corev1.Node
		seen     bool
		want     Fact
	}{
		"the node is ready":             {own, []corev1.Node{other, node("own", corev1.ConditionTrue)}, true, Yes},
		"the node is not ready":         {own, []corev1.Node{other, node("own", corev1.ConditionUnknown)}, true, Unseen},
		"the node is gone":              {own, []corev1.Node{other}, true, No},
		"nodes were listed in part":     {own, []corev1.Node{other}, false, Unseen},
		"any node reaches the volume":   {nil, []corev1.Node{other}, true, Yes},
		"the node is on the first page": {own, []corev1.Node{node("own", corev1.ConditionTrue)}, false, Yes},
	} {
		if got := NodeOf(tc.affinity, tc.nodes, tc.seen); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}
