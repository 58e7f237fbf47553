package forecast_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	. "github.com/exeunt-io/exeunt/pkg/forecast"
	"github.com/exeunt-io/exeunt/pkg/why/cluster/clustertest"
)

// storage answers with a node of a hundred pods, each with a claim of its own.
type storage struct {
	pods    v1.PodList
	claims  v1.PersistentVolumeClaimList
	volumes v1.PersistentVolumeList
	// asked counts the requests about claims and volumes.
	asked atomic.Int64
}

func newStorage() *storage {
	list := func(kind string) metav1.TypeMeta { return metav1.TypeMeta{APIVersion: "v1", Kind: kind + "List"} }
	s := &storage{pods: v1.PodList{TypeMeta: list("Pod")}, claims: v1.PersistentVolumeClaimList{TypeMeta: list("PersistentVolumeClaim")},
		volumes: v1.PersistentVolumeList{TypeMeta: list("PersistentVolume")}}
	s.pods.ResourceVersion, s.claims.ResourceVersion, s.volumes.ResourceVersion = "1", "1", "1"
	for i := range 100 {
		name := fmt.Sprintf("p%d", i)
		p := newPod(name)
		p.Spec.Volumes = []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{
			PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: name}}}}
		s.pods.Items = append(s.pods.Items, p)
		claim := v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
		claim.Spec.VolumeName = "pv-" + name
		s.claims.Items = append(s.claims.Items, claim)
		volume := v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-" + name}}
		volume.Spec.Local = &v1.LocalVolumeSource{}
		s.volumes.Items = append(s.volumes.Items, volume)
	}
	return s
}

func (s *storage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var answer any
	switch path := strings.TrimPrefix(r.URL.Path, "/api/v1/"); path {
	case "nodes/n1":
		answer = &v1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}, ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	case "pods":
		answer = &s.pods
	case "namespaces/shop/persistentvolumeclaims":
		s.asked.Add(1)
		answer = &s.claims
	case "persistentvolumes":
		s.asked.Add(1)
		answer = &s.volumes
	default:
		if strings.Contains(path, "persistentvolume") {
			s.asked.Add(1)
		}
		w.WriteHeader(http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

func TestClaimsAreListedOnce(t *testing.T) {
	s := newStorage()
	report, err := Read(t.Context(), clustertest.NewReader(t, s.ServeHTTP), "n1", "15m")
	if err != nil || len(report.Pods) != 100 {
		t.Fatalf("%d pods, %v, %q", len(report.Pods), err, report.Incomplete)
	}
	for _, p := range report.Pods {
		if len(p.Losses) != 1 {
			t.Fatalf("pod %s loses %+v, want its local volume", p.Name, p.Losses)
		}
	}
	if asked := s.asked.Load(); asked != 2 {
		t.Errorf("%d requests about claims and volumes, want 2", asked)
	}
}
