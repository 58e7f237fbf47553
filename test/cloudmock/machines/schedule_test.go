package machines

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestPodFitsNode(t *testing.T) {
	node := &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "mock-0", Labels: map[string]string{"zone": "a"}},
		Spec:       v1.NodeSpec{Taints: []v1.Taint{{Key: "taint", Effect: v1.TaintEffectNoSchedule}}},
	}
	tolerates := []v1.Toleration{{Key: "taint", Operator: v1.TolerationOpExists}}
	field := func(name string) *v1.Affinity {
		return &v1.Affinity{NodeAffinity: &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{
			NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchFields: []v1.NodeSelectorRequirement{
				{Key: metav1.ObjectNameField, Operator: v1.NodeSelectorOpIn, Values: []string{name}}}}}}}}
	}
	zone := func(name string) map[string]string { return map[string]string{"zone": name} }
	for name, tc := range map[string]struct {
		spec       v1.PodSpec
		unschedule bool
		want       bool
	}{
		"taint is not tolerated":    {spec: v1.PodSpec{}, want: false},
		"taint is tolerated":        {spec: v1.PodSpec{Tolerations: tolerates}, want: true},
		"node is cordoned":          {spec: v1.PodSpec{Tolerations: tolerates}, unschedule: true, want: false},
		"selector matches":          {spec: v1.PodSpec{Tolerations: tolerates, NodeSelector: zone("a")}, want: true},
		"selector matches not":      {spec: v1.PodSpec{Tolerations: tolerates, NodeSelector: zone("b")}, want: false},
		"pod of a DaemonSet":        {spec: v1.PodSpec{Tolerations: tolerates, Affinity: field("mock-0")}, want: true},
		"DaemonSet of another node": {spec: v1.PodSpec{Tolerations: tolerates, Affinity: field("mock-1")}, want: false},
	} {
		t.Run(name, func(t *testing.T) {
			node := node.DeepCopy()
			node.Spec.Unschedulable = tc.unschedule
			if got := fits(node, &tc.spec); got != tc.want {
				t.Errorf("fits: %t, want %t", got, tc.want)
			}
		})
	}
}

func TestPodsOfOneOwnerAreSpread(t *testing.T) {
	owned := func() *v1.Pod {
		pod := newPod("web")
		pod.OwnerReferences = []metav1.OwnerReference{{UID: "owner", Controller: new(true)}}
		return pod
	}
	var rooms []*room
	for _, name := range []string{"mock-0", "mock-1"} {
		rooms = append(rooms, &room{node: &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, owners: map[types.UID]int{}})
	}
	rooms[0].add(newPod("other"))
	rooms[0].add(newPod("another"))
	var got []string
	for range 3 {
		chosen := choose(rooms, owned())
		chosen.add(owned())
		got = append(got, chosen.node.Name)
	}
	if got[0] != "mock-1" || got[1] != "mock-0" || got[2] != "mock-1" {
		t.Errorf("pods are bound to %v", got)
	}
}
