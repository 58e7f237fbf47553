package why

import (
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/cluster/clustertest"
)

func refTo(resource, kind, namespace, name string) cluster.Ref {
	return cluster.Ref{Resource: corev1.SchemeGroupVersion.WithResource(resource), Kind: kind, Namespace: namespace,
		Name: name}
}

// partlyForbidden is an API server with a released volume, a node and a deleted node, whose user may not read some
// of it.
func partlyForbidden(t *testing.T, forbidden ...string) *Explorer {
	t.Helper()
	now := metav1.Now()
	volume := &corev1.PersistentVolume{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolume"},
		ObjectMeta: metav1.ObjectMeta{Name: "v", UID: "v", DeletionTimestamp: &now,
			Finalizers: []string{"external-provisioner.volume.kubernetes.io/finalizer"}},
		Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			ClaimRef:                      &corev1.ObjectReference{Namespace: "n", Name: "c", UID: "c"},
			PersistentVolumeSource:        corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "csi.example.com", VolumeHandle: "h"}},
		},
		Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeReleased},
	}
	other := volume.DeepCopy()
	other.Name, other.UID, other.Spec.CSI.VolumeHandle = "w", "w", "i"
	node := &corev1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: "node", UID: "node"}}
	objects := clustertest.Objects{"persistentvolumes": {volume, other}, "nodes": {node}}
	return NewExplorer(clustertest.NewReader(t, forbidding(objects, forbidden...)), cluster.Commands{}, false)
}

// forbidding refuses requests for these resources, and answers everything else by next.
func forbidding(next http.Handler, forbidden ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		for _, resource := range forbidden {
			if strings.Contains(r.URL.Path+"/", "/"+resource+"/") {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusForbidden)
				_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`))
				return
			}
		}
		next.ServeHTTP(w, r)
	}
}

func TestReportNamesOnlyWhatItsObjectNeeds(t *testing.T) {
	e := partlyForbidden(t, "secrets", "volumeattachments")
	answers := e.Several(t.Context(), []cluster.Ref{
		refTo("secrets", "Secret", "n", "s"), refTo("persistentvolumes", "PersistentVolume", "", "v"),
		refTo("persistentvolumes", "PersistentVolume", "", "w"), refTo("nodes", "Node", "", "node"),
	})
	if answers[0].Err == nil {
		t.Errorf("a forbidden read has the report %+v", answers[0].Report)
	}
	for _, answer := range answers[1:3] {
		if text := strings.Join(answer.Report.Incomplete, "\n"); answer.Err != nil || strings.Contains(text, "secrets") ||
			!strings.Contains(text, "no right to list volumeattachments") {
			t.Errorf("%v: not read: %q, %v; want the attachments alone", answer.Ref, text, answer.Err)
		}
	}
	if node := answers[3]; node.Err != nil || len(node.Report.Incomplete) > 0 {
		t.Errorf("of the node was not read: %q, %v", node.Report.Incomplete, node.Err)
	}
	if all := strings.Join(e.Reader().Incomplete(), "\n"); !strings.Contains(all, "secrets") ||
		!strings.Contains(all, "volumeattachments") {
		t.Errorf("of the cluster was not read: %q", all)
	}
}
