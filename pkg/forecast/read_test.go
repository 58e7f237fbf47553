package forecast_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	. "github.com/exeunt-io/exeunt/pkg/forecast"
	"github.com/exeunt-io/exeunt/pkg/why/cluster/clustertest"
)

// storage answers with a node of a hundred pods, each with a claim of its own.
type storage struct {
	pods    v1.PodList
	claims  v1.PersistentVolumeClaimList
	volumes v1.PersistentVolumeList
	// attachments are one for each node.
	attachments storagev1.VolumeAttachmentList
	// asked counts the requests about claims, volumes and attachments.
	asked atomic.Int64
}

func newStorage() *storage {
	list := func(kind string) metav1.TypeMeta { return metav1.TypeMeta{APIVersion: "v1", Kind: kind + "List"} }
	s := &storage{pods: v1.PodList{TypeMeta: list("Pod")}, claims: v1.PersistentVolumeClaimList{TypeMeta: list("PersistentVolumeClaim")},
		volumes: v1.PersistentVolumeList{TypeMeta: list("PersistentVolume")}}
	s.pods.ResourceVersion, s.claims.ResourceVersion, s.volumes.ResourceVersion = "1", "1", "1"
	s.attachments.TypeMeta = metav1.TypeMeta{APIVersion: "storage.k8s.io/v1", Kind: "VolumeAttachmentList"}
	s.attachments.ResourceVersion = "1"
	for _, node := range []string{"n1", "n2"} {
		attached := storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "of-" + node, UID: types.UID(node)}}
		attached.Spec.NodeName, attached.Spec.Source.PersistentVolumeName = node, new("pv-p1")
		s.attachments.Items = append(s.attachments.Items, attached)
	}
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
	case "nodes/n1", "nodes/n2":
		answer = &v1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
			ObjectMeta: metav1.ObjectMeta{Name: strings.TrimPrefix(path, "nodes/")}}
	case "pods":
		answer = &s.pods
	case "namespaces/shop/persistentvolumeclaims":
		s.asked.Add(1)
		answer = &s.claims
	case "persistentvolumes":
		s.asked.Add(1)
		answer = &s.volumes
	case "/apis/storage.k8s.io/v1/volumeattachments":
		s.asked.Add(1)
		answer = &s.attachments
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

// "exeunt why --all" asks about each node that is being drained, and twice.
func TestStorageIsListedOnceForAllNodes(t *testing.T) {
	s := newStorage()
	reader := clustertest.NewReader(t, s.ServeHTTP)
	for _, node := range []string{"n1", "n1", "n2"} {
		report, err := Read(t.Context(), reader, node, "15m")
		if err != nil || len(report.Pods) != 100 {
			t.Fatalf("%d pods, %v, %q", len(report.Pods), err, report.Incomplete)
		}
		for _, p := range report.Pods {
			if len(p.Losses) != 1 {
				t.Fatalf("pod %s loses %+v, want its local volume", p.Name, p.Losses)
			}
		}
		if len(report.Disks) != 1 || report.Disks[0].Attachment != "of-"+node || len(report.Disks[0].Pods) != 1 {
			t.Errorf("the disks of %s are %+v", node, report.Disks)
		}
	}
	if asked := s.asked.Load(); asked != 3 {
		t.Errorf("%d requests about claims, volumes and attachments, want 3", asked)
	}
}
