package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/exeunt-io/exeunt/pkg/storage"
)

// worldPage is the number of entries in a page of the world.
const worldPage = 3

// worldStorage is the CSI driver of the world.
type worldStorage struct{ *world }

func (w worldStorage) Name() string { return worldDriver }

func (w worldStorage) ListsVolumes() bool { return true }

func (w worldStorage) ListsSnapshots() bool { return false }

func (w worldStorage) ListSnapshots(context.Context, *csi.ListSnapshotsRequest) (*csi.ListSnapshotsResponse, error) {
	return nil, status.Error(codes.Unimplemented, "no snapshots")
}

func (w worldStorage) ListVolumes(_ context.Context,
	request *csi.ListVolumesRequest) (*csi.ListVolumesResponse, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.change()
	after, _ := strconv.Atoi(request.GetStartingToken())
	page := &csi.ListVolumesResponse{}
	for _, volume := range w.volumes {
		switch {
		case volume.sequence <= after:
			continue
		case len(page.Entries) == worldPage:
			page.NextToken = strconv.Itoa(after)
			return page, nil
		}
		after = volume.sequence
		described := &csi.Volume{VolumeId: volume.handle, CapacityBytes: 1 << 20,
			VolumeContext: map[string]string{"name": volume.name}}
		if volume.source != "" {
			described.ContentSource = &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: volume.source}}}
		}
		page.Entries = append(page.Entries, &csi.ListVolumesResponse_Entry{Volume: described})
	}
	return page, nil
}

func (w worldStorage) ValidateVolumeCapabilities(_ context.Context,
	request *csi.ValidateVolumeCapabilitiesRequest) (*csi.ValidateVolumeCapabilitiesResponse, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.change()
	if w.find(request.GetVolumeId()) == nil {
		return nil, status.Error(codes.NotFound, "no such volume")
	}
	return &csi.ValidateVolumeCapabilitiesResponse{}, nil
}

// worldServer answers the requests of a client about one cluster of the world.
type worldServer struct {
	*world
	cluster *worldCluster
}

func (s worldServer) RoundTrip(request *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.change()
	body := s.answer(request)
	code := http.StatusOK
	if body == nil {
		code = http.StatusNotFound
		body = metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Reason: metav1.StatusReasonNotFound,
			Code:    http.StatusNotFound,
			Details: &metav1.StatusDetails{Name: path.Base(request.URL.Path)},
		}
	}
	return answerWith(request, code, body)
}

// answerWith returns a response in JSON.
func answerWith(request *http.Request, code int, body any) (*http.Response, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: code, Request: request, Header: http.Header{"Content-Type": []string{"application/json"}},
		Body: io.NopCloser(bytes.NewReader(text)),
	}, nil
}

func (s worldServer) answer(request *http.Request) any {
	path := request.URL.Path
	if name, single := strings.CutPrefix(path, "/api/v1/persistentvolumes/"); single {
		if record := s.cluster.records[name]; record != nil {
			return typed("v1", "PersistentVolume", record)
		}
		return nil
	}
	const snapshots = "snapshot.storage.k8s.io/v1"
	version := metav1.GroupVersionForDiscovery{GroupVersion: snapshots, Version: "v1"}
	switch path {
	case "/version":
		return map[string]string{"major": "1"}
	case "/apis":
		return metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList"},
			Groups: []metav1.APIGroup{{Name: "snapshot.storage.k8s.io", PreferredVersion: version,
				Versions: []metav1.GroupVersionForDiscovery{version}}}}
	case "/apis/" + snapshots:
		return metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList"},
			APIResources: []metav1.APIResource{{Name: "volumesnapshotcontents"}}}
	}
	return s.list(path, request.URL.Query().Get("continue"))
}

// list returns a page of a consistent list.
func (s worldServer) list(path, token string) any {
	items := s.pages[token]
	kind, version := "", ""
	switch path {
	case "/apis/coordination.k8s.io/v1/leases":
		kind, version = "Lease", "coordination.k8s.io/v1"
	case "/api/v1/persistentvolumeclaims":
		kind, version = "PartialObjectMetadata", "meta.k8s.io/v1"
	case "/apis/storage.k8s.io/v1/volumeattachments":
		kind, version = "VolumeAttachment", "storage.k8s.io/v1"
	case "/apis/snapshot.storage.k8s.io/v1/volumesnapshotcontents":
		kind, version = "VolumeSnapshotContent", "snapshot.storage.k8s.io/v1"
	case "/api/v1/pods":
		kind, version = "Pod", "v1"
	case "/api/v1/persistentvolumes":
		kind, version = "PersistentVolume", "v1"
	default:
		return nil
	}
	if token == "" {
		items = s.items(kind)
	}
	meta := map[string]any{"resourceVersion": "1"}
	if len(items) > worldPage {
		next := fmt.Sprintf("page-%d", len(s.pages)+1)
		s.pages[next] = items[worldPage:]
		items, meta["continue"] = items[:worldPage], next
	}
	return map[string]any{"kind": kind + "List", "apiVersion": version, "metadata": meta, "items": items}
}

// items returns copies of all objects of the kind, in a random order.
func (s worldServer) items(kind string) []any {
	items := []any{}
	switch kind {
	case "Lease":
		lease := s.cluster.lease()
		items = append(items, lease)
	case "PartialObjectMetadata":
		for _, claim := range s.cluster.claims {
			if claim.exists {
				items = append(items, metadataOf(claim))
			}
		}
	case "VolumeSnapshotContent":
		for name, handle := range s.cluster.contents {
			items = append(items, map[string]any{"metadata": map[string]any{"name": name},
				"spec": map[string]any{"source": map[string]any{"volumeHandle": handle}}})
		}
	case "PersistentVolume":
		for _, record := range s.cluster.records {
			items = append(items, record.DeepCopy())
		}
	}
	return items
}

func metadataOf(claim *worldClaim) metav1.PartialObjectMetadata {
	object := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "claim-" + string(claim.uid), UID: claim.uid,
		Annotations: map[string]string{storage.AnnStorageProvisioner: worldDriver},
	}}
	if claim.recorded {
		object.Annotations[storage.AnnBindCompleted] = "yes"
	}
	return object
}

func typed(version, kind string, volume *v1.PersistentVolume) *v1.PersistentVolume {
	answer := volume.DeepCopy()
	answer.APIVersion, answer.Kind = version, kind
	return answer
}

func (w *world) audit(t *testing.T) *Report {
	t.Helper()
	config := Config{Driver: worldStorage{w}}
	for i, cluster := range w.clusters {
		made, err := NewCluster(fmt.Sprintf("cluster-%d", i), &rest.Config{Host: "http://world",
			Transport: worldServer{w, cluster}})
		if err != nil {
			t.Fatal(err)
		}
		config.Clusters = append(config.Clusters, made)
	}
	report, err := Run(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// TestChangingClustersNeverYieldWrongOrphans audits 1,000 random worlds that change between
// all requests: no orphan is needed, and every planted orphan is found.
func TestChangingClustersNeverYieldWrongOrphans(t *testing.T) {
	const runs = 1000
	doubtful, needed := 0, 0
	for seed := range uint64(runs) {
		w := newWorld(seed)
		report := w.audit(t)
		found := map[string]bool{}
		for _, orphan := range report.Orphans {
			found[orphan.Handle] = true
			if w.needs(orphan.Handle) {
				t.Errorf("seed %d: orphan %s is needed: %+v", seed, orphan.Handle, w.find(orphan.Handle))
			}
		}
		for _, handle := range w.planted {
			if !found[handle] {
				t.Errorf("seed %d: planted volume %s is no orphan: %+v", seed, handle, report)
			}
		}
		var ghosts []string
		for _, ghost := range report.Ghosts {
			ghosts = append(ghosts, ghost.Name)
		}
		if !slices.Equal(ghosts, w.ghosts) {
			t.Errorf("seed %d: ghosts %q, want %q", seed, ghosts, w.ghosts)
		}
		if !report.Enumerated || len(report.Incomplete) > 0 {
			t.Errorf("seed %d: enumerated %v, incomplete %q", seed, report.Enumerated, report.Incomplete)
		}
		doubtful += len(report.Doubtful)
		for _, volume := range w.volumes {
			if w.needs(volume.handle) {
				needed++
			}
		}
	}
	t.Logf("%d runs, seeds 0 to %d: %d needed volumes, %d doubtful", runs, runs-1, needed, doubtful)
	if doubtful == 0 || needed < runs {
		t.Error("nothing happened in the worlds: the test proves nothing")
	}
}
