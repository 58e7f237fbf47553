package storage

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/why/cluster/clustertest"
	"github.com/exeunt-io/exeunt/test/paste"
)

func TestFinishedPodsAreOneBlockerWithOneCommand(t *testing.T) {
	var pods []*corev1.Pod
	for i := range 12 {
		pods = append(pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("job-%d", i)}, Status: corev1.PodStatus{Phase: corev1.PodSucceeded}})
	}
	running := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	found := podBlockers(t.Context(), commandsOnly{}, append(pods, running), "f")
	if len(found) != 2 || found[0].Object.Name != "web" || strings.Count(found[1].Next, "kubectl delete pods job-0 job-1 ") != 1 || !strings.Contains(found[1].Next, "job-11 -n shop") || strings.Contains(found[1].Next, "web") {
		t.Errorf("the blockers are %+v", found)
	}
	for _, one := range found {
		paste.ExpectSafe(t, one.Next)
	}
	if alone := podBlockers(t.Context(), commandsOnly{}, pods[:1], "f"); len(alone) != 1 || alone[0].Holder != "pod shop/job-0" {
		t.Errorf("one finished pod is %+v", alone)
	}
}

// Five drivers have a provisioner of the same name.
func TestMissingProvisionerIsThatOfItsDriver(t *testing.T) {
	lease, _ := provisioner(stockImage, stockIdentity)
	lease.Spec.RenewTime = &metav1.MicroTime{Time: time.Now().Add(-time.Hour)}
	e := explorer{reader: clustertest.NewReader(t, clustertest.Objects{"leases": {&lease}}.ServeHTTP)}
	object, err := toUnstructured("v1", "PersistentVolume", newVolume(corev1.VolumeReleased, "former", finalizer.External))
	if err != nil {
		t.Fatal(err)
	}
	found := explainVolume(t.Context(), e, object)
	if len(found) != 1 {
		t.Fatalf("the blockers are %+v", found)
	}
	next := found[0].Next
	if !strings.Contains(next, "disk disk ") || !strings.Contains(next, "driver csi.example.com") || !strings.Contains(next, "\nkubectl get csidriver csi.example.com\n") || !strings.Contains(found[0].Holder, "csi.example.com") {
		t.Errorf("holder %q, next step %q", found[0].Holder, next)
	}
	seen := map[string]bool{}
	for _, one := range found[0].Normalized().Evidence {
		if seen[one.Text] {
			t.Errorf("the evidence is there twice: %s", one.Text)
		}
		seen[one.Text] = true
	}
	paste.ExpectSafe(t, next)
}
