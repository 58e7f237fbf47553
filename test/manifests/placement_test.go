package manifests

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// measured is the memory for 40,000 bound pairs, interpolated from docs/operate.md.
var measured = resource.MustParse("250M")

func TestPVControllerRunsOnControlPlaneNodes(t *testing.T) {
	seen := 0
	for name, objects := range renderings(t) {
		for _, pod := range podsOf(t, objects) {
			if pod.Containers[0].Name != "pv-controller" {
				continue
			}
			seen++
			for _, effect := range []v1.TaintEffect{v1.TaintEffectNoSchedule, v1.TaintEffectNoExecute} {
				if taint := (v1.Taint{Key: "node-role.kubernetes.io/control-plane", Effect: effect}); !tolerates(pod, taint) {
					t.Errorf("%s: the pv-controller does not tolerate %s", name, taint.ToString())
				}
			}
		}
	}
	if seen == 0 {
		t.Error("no manifest has a pv-controller")
	}
}

func tolerates(pod v1.PodSpec, taint v1.Taint) bool {
	for _, toleration := range pod.Tolerations {
		if toleration.Key == taint.Key && toleration.Operator == v1.TolerationOpExists &&
			(toleration.Effect == "" || toleration.Effect == taint.Effect) {
			return true
		}
	}
	return false
}

func TestPVControllerRequestsTheMeasuredMemory(t *testing.T) {
	for name, objects := range renderings(t) {
		if name == "chart with every value" {
			continue // it replaces the default
		}
		for _, pod := range podsOf(t, objects) {
			container := pod.Containers[0]
			if request := container.Resources.Requests[v1.ResourceMemory]; container.Name == "pv-controller" &&
				request.Cmp(measured) < 0 {
				t.Errorf("%s: the pv-controller requests %s of memory, want %s", name, request.String(), measured.String())
			}
		}
	}
}
