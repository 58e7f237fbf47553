package runner

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/rollback"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/cluster/clustertest"
)

// populated returns an observation of a volume of the driver, and of no Lease.
func populated(t *testing.T) *observation {
	t.Helper()
	s := observed(t, nil)
	s.known = knownNames{volumesRead: true, claimsRead: true}
	volume := &corev1.PersistentVolume{}
	volume.Name, volume.Annotations = "pvc-1", map[string]string{"pv.kubernetes.io/provisioned-by": driver,
		"exeunt.io/reclaim": "done"}
	s.known.addVolume(volume, nil)
	return s
}

func TestNamesThatMatchNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		options Options
		want    string
		outcome rollback.Outcome
	}{
		"unserved": {Options{Unserved: []string{driver}}, "", rollback.NothingLeft},
		"unserved, misspelled": {Options{Unserved: []string{"csi.exmaple.com"}},
			"--unserved csi.exmaple.com: no volume, claim, Lease or journal names this driver; did you mean csi.example.com?", rollback.SomethingLeft},
		"unserved, not near": {Options{Unserved: []string{"nfs"}}, "--unserved nfs: no volume, claim, Lease or journal names this driver", rollback.NothingLeft},
		"disk":               {Options{AbandonDisk: []string{"pvc-1"}}, "", rollback.NothingLeft},
		"disk, misspelled": {Options{AbandonDisk: []string{"pcv-1"}},
			"--abandon-disk pcv-1: there is no such PersistentVolume; did you mean pvc-1?", rollback.SomethingLeft},
		"disk, not near": {Options{AbandonDisk: []string{"other-volume"}},
			"--abandon-disk other-volume: there is no such PersistentVolume", rollback.NothingLeft},
		"stopped": {Options{Stopped: []string{driver, PVController}}, "", rollback.NothingLeft},
		"stopped, misspelled": {Options{Stopped: []string{"csi.exmaple.com"}},
			"--stopped csi.exmaple.com: no volume, claim, Lease or journal names this driver; did you mean csi.example.com?", rollback.NothingLeft},
		"stopped, all of it gone": {Options{Stopped: []string{"nfs"}}, "--stopped nfs: no volume, claim, Lease or journal names this driver", rollback.NothingLeft},
		"stopped, our loops": {Options{Stopped: []string{"pv-controler"}},
			"--stopped pv-controler: no volume, claim, Lease or journal names this driver; did you mean pv-controller?", rollback.NothingLeft},
		"stopped, no provisioner": {Options{Stopped: []string{"garbage-collector"}},
			"--stopped garbage-collector: no volume, claim, Lease or journal names this driver", rollback.NothingLeft},
	} {
		t.Run(name, func(t *testing.T) {
			s := populated(t)
			s.programs.leases = map[[2]string]*coordinationv1.Lease{{"kube-system", "garbage-collector"}: lease("pod_exeunt",
				time.Second)}
			s.options = &tc.options
			s.unmatched = s.matchNames(t.Context())
			plan := newPlan(s)
			if got := strings.Join(plan.Unmatched, "\n"); got != tc.want || plan.Outcome() != tc.outcome {
				t.Errorf("unmatched %q, want %q; outcome %v, want %v", got, tc.want, plan.Outcome(), tc.outcome)
			}
			if got := strings.Join(strings.Fields(string(plan.text(80))), " "); !strings.Contains(got, tc.want) {
				t.Errorf("the text lacks the sentence:\n%s", plan.text(80))
			}
		})
	}
}

// An earlier run did everything for a driver, and a similar one is in use.
func TestServedDriverIsNotTakenForTheNamedOne(t *testing.T) {
	s := populated(t)
	s.programs.leases = named("n", lease("other", time.Second))
	s.options = &Options{Unserved: []string{"csi.exemple.com"}}
	if got := s.matchNames(t.Context()); got.wrong || len(got.sentences) != 1 {
		t.Errorf("a driver that is served counts: %+v", got)
	}
}

// A driver may be named by its Lease or journal alone.
func TestLeaseAndJournalNameDriver(t *testing.T) {
	for name, s := range map[string]*observation{
		"Lease": observed(t, named("n", lease("", time.Hour))), "journal": observed(t, nil, "n"),
	} {
		s.known = knownNames{volumesRead: true, claimsRead: true}
		s.options = &Options{Stopped: []string{driver}, Unserved: []string{driver}}
		if got := s.matchNames(t.Context()); len(got.sentences) > 0 {
			t.Errorf("%s: %q", name, got.sentences)
		}
	}
}

func TestUnreadListsMatchNothingForCertain(t *testing.T) {
	for name, change := range map[string]func(*observation){
		"volumes": func(s *observation) { s.known.volumesRead = false },
		"claims":  func(s *observation) { s.known.claimsRead = false },
		"Leases":  func(s *observation) { s.programs.leasesSeen = false },
	} {
		s := populated(t)
		s.options = &Options{Stopped: []string{"x"}, Unserved: []string{"x"}, AbandonDisk: []string{"x"}}
		change(s)
		got := s.matchNames(t.Context()).sentences
		got = slices.DeleteFunc(got,
			func(sentence string) bool { return name != "volumes" && strings.HasPrefix(sentence, "--abandon-disk") })
		if len(got) > 0 {
			t.Errorf("%s were not read: %q", name, got)
		}
	}
}

// clusterOf serves a volume until it is patched, and nothing else.
func clusterOf(t *testing.T, volume *corev1.PersistentVolume) func() (*cluster.Reader, error) {
	t.Helper()
	kinds := map[string]string{
		"persistentvolumes": "PersistentVolumeList", "persistentvolumeclaims": "PersistentVolumeClaimList", "pods": "PodList",
		"leases": "LeaseList", "csidrivers": "CSIDriverList", "csinodes": "CSINodeList",
		"deployments": "DeploymentList", "statefulsets": "StatefulSetList", "daemonsets": "DaemonSetList",
	}
	var patched atomic.Bool
	answer := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/version" {
			_, _ = io.WriteString(w, `{"gitVersion":"v1.36.3"}`)
			return
		}
		parts := strings.Split(r.URL.Path, "/")
		kind, isList := kinds[parts[len(parts)-1]]
		object := map[string]any{"kind": kind, "apiVersion": strings.Join(parts[2:len(parts)-1], "/"),
			"metadata": map[string]any{"resourceVersion": "7"}, "items": []any{}}
		switch {
		case r.Method == http.MethodPatch:
			patched.Store(true)
			object = map[string]any{"kind": "PersistentVolume", "apiVersion": "v1",
				"metadata": map[string]any{"name": volume.Name}}
		case kind == "PersistentVolumeList" && !patched.Load():
			object["items"] = []any{volume}
		case !isList:
			w.WriteHeader(http.StatusNotFound)
			object = map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound",
				"code":    http.StatusNotFound,
				"details": map[string]any{"name": parts[len(parts)-1]}}
		}
		if err := json.NewEncoder(w).Encode(object); err != nil {
			t.Error(err)
		}
	}
	served := map[string][]metav1.APIResource{"v1": {{Name: "persistentvolumes", Kind: "PersistentVolume"}}}
	server := clustertest.Discovery{Served: served, Next: http.HandlerFunc(answer)}
	return func() (*cluster.Reader, error) { return clustertest.NewReader(t, server.ServeHTTP), nil }
}

// The volume is gone once its finalizer is removed.
func TestNameOfRemovedVolumeMatches(t *testing.T) {
	volume := &corev1.PersistentVolume{}
	volume.Name, volume.UID, volume.ResourceVersion = "pvc-1", "u", "1"
	volume.Finalizers = []string{string(finalizer.External)}
	volume.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: "h"}
	o := Options{Connect: clusterOf(t, volume), Confirm: true, Unserved: []string{driver}, Timeout: time.Minute,
		Progress: io.Discard}
	plan, err := Run(t.Context(), o)
	if err != nil || plan.Outcome() != rollback.NothingLeft || len(plan.Unmatched) > 0 {
		t.Errorf("error %v\n%s", err, plan.text(80))
	}
	// A repeated run says so, and does not fail.
	if plan, err = Run(t.Context(), o); err != nil || plan.Outcome() != rollback.NothingLeft || len(plan.Unmatched) != 1 {
		t.Errorf("another run: error %v\n%s", err, plan.text(80))
	}
}
