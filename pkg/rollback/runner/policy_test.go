package runner

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/cluster/clustertest"
)

// policyServer returns a reader of an API server that has the policy, its binding, and that list of drivers.
func policyServer(t *testing.T, namespace, name string) *cluster.Reader {
	t.Helper()
	const group = "/apis/admissionregistration.k8s.io/v1/"
	metadata := func(namespace, name string) map[string]any {
		return map[string]any{"namespace": namespace, "name": name, "uid": name}
	}
	objects := map[string]any{
		group + "mutatingadmissionpolicybindings/" + deploy.Policy: map[string]any{
			"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicyBinding",
			"metadata": metadata("", deploy.Policy),
			"spec":     map[string]any{"paramRef": map[string]any{"namespace": namespace, "name": name}},
		},
		group + "mutatingadmissionpolicies/" + deploy.Policy: map[string]any{
			"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicy",
			"metadata": metadata("", deploy.Policy),
		},
		"/api/v1/namespaces/" + namespace + "/configmaps/" + name: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata(namespace, name),
		},
	}
	return clustertest.NewReader(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		object, has := objects[r.URL.Path]
		if !has {
			w.WriteHeader(http.StatusNotFound)
			object = metav1.Status{Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound}
		}
		if err := json.NewEncoder(w).Encode(object); err != nil {
			t.Error(err)
		}
	})
}

// Only the binding says where the list is, so the list goes first: the next run would not find it. A ConfigMap of
// another name is not ours.
func TestListOfDriversGoesBeforeTheBinding(t *testing.T) {
	for name, want := range map[string]string{
		deploy.Drivers:     "ConfigMap MutatingAdmissionPolicyBinding MutatingAdmissionPolicy",
		"cluster-settings": "MutatingAdmissionPolicyBinding MutatingAdmissionPolicy",
	} {
		s := &observation{reader: policyServer(t, "storage", name)}
		s.readPolicy(t.Context())
		var kinds []string
		for _, item := range s.policy.items {
			kinds = append(kinds, item.Object.Kind)
		}
		if got := strings.Join(kinds, " "); got != want || s.policy.unread {
			t.Errorf("list %s: %s are removed, want %s; unread: %t", name, got, want, s.policy.unread)
		}
	}
}

// The image of csi-provisioner has another command than ours.
func TestImageCommandRemovesTheCommand(t *testing.T) {
	pod := programPod{namespace: "csi", workload: "deployment/driver", container: "csi-provisioner"}
	if got, want := imageCommand(cluster.Commands{}, pod), "kubectl set image deployment/driver csi-provisioner="+
		upstreamImage+" -n csi"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	pod.command = true
	for init, list := range map[bool]string{false: `"containers"`, true: `"initContainers"`} {
		pod.init = init
		want := `kubectl patch deployment/driver -p '{"spec":{"template":{"spec":{` + list +
			`:[{"name":"csi-provisioner","image":"` + upstreamImage + `","command":null}]}}}}' -n csi`
		if got := imageCommand(cluster.Commands{}, pod); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
