package runner

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/rollback"
	"github.com/exeunt-io/exeunt/pkg/termination"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/cluster/clustertest"
)

// nodeServer is an API server with nodes, NodeClaims and the Lease of node-terminator, and the writes that it got.
type nodeServer struct {
	t      *testing.T
	nodes  []metav1.PartialObjectMetadata
	claims []map[string]any
	lease  *coordinationv1.Lease
	writes []string
	// progress is what the command tells.
	progress strings.Builder
	// conflicts is the number of patches that find another version.
	conflicts int
}

func (s *nodeServer) connect() (*cluster.Reader, error) {
	verbs := metav1.Verbs{"list", "patch"}
	return clustertest.NewReader(s.t, clustertest.Discovery{Next: s, Served: map[string][]metav1.APIResource{
		"v1":              {{Name: "nodes", Kind: "Node", Verbs: verbs}},
		"karpenter.sh/v1": {{Name: "nodeclaims", Kind: "NodeClaim", Verbs: verbs}},
	}}.ServeHTTP), nil
}

func (s *nodeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.Method == http.MethodPatch && s.conflicts > 0:
		s.conflicts--
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`)
	case r.Method != http.MethodGet:
		s.write(w, r)
	case r.URL.Path == "/api/v1/nodes":
		s.answer(w, metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1",
			Kind: "PartialObjectMetadataList"}, ListMeta: metav1.ListMeta{ResourceVersion: "7"}, Items: s.nodes})
	case r.URL.Path == "/apis/karpenter.sh/v1/nodeclaims":
		s.answer(w, map[string]any{"kind": "NodeClaimList", "apiVersion": "karpenter.sh/v1",
			"metadata": map[string]any{"resourceVersion": "7"}, "items": s.claims})
	case strings.HasPrefix(r.URL.Path, "/api/v1/nodes/"):
		s.answer(w, s.node(r.URL.Path))
	case s.lease != nil && strings.HasSuffix(r.URL.Path, "/leases/node-terminator"):
		s.answer(w, s.lease)
	default:
		clustertest.Objects{}.ServeHTTP(w, r)
	}
}

func (s *nodeServer) answer(w http.ResponseWriter, answer any) {
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		s.t.Error(err)
	}
}

// node returns the node that the path names.
func (s *nodeServer) node(path string) *metav1.PartialObjectMetadata {
	for i := range s.nodes {
		if strings.HasSuffix(path, "/nodes/"+s.nodes[i].Name) {
			return &s.nodes[i]
		}
	}
	return nil
}

// write notes the write. A patch takes finalizers and annotations off.
func (s *nodeServer) write(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Error(err)
	}
	if node := s.node(r.URL.Path); node != nil {
		s.writes = append(s.writes, node.Name+" "+string(body))
		node.Finalizers, node.Annotations = nil, nil
		s.answer(w, node)
		return
	}
	s.writes = append(s.writes, r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:])
	if strings.HasSuffix(r.URL.Path, "/leases/node-terminator") {
		lease := &coordinationv1.Lease{}
		if err := json.Unmarshal(body, lease); err != nil { // the client writes protobuf: the answer is what counts
			lease = s.lease.DeepCopy()
		}
		s.lease.Spec.HolderIdentity = ptr.To(standby)
		s.answer(w, lease)
		return
	}
	s.claims = slices.DeleteFunc(s.claims, func(claim map[string]any) bool {
		return strings.HasSuffix(r.URL.Path, "/"+claim["metadata"].(map[string]any)["name"].(string))
	})
	s.answer(w, map[string]any{"kind": "NodeClaim", "apiVersion": "karpenter.sh/v1"})
}

func (s *nodeServer) run(confirm bool) (Plan, error) {
	s.t.Helper()
	return Run(s.t.Context(), Options{Connect: s.connect, Confirm: confirm, NodesOnly: true, Timeout: time.Minute,
		Progress: &s.progress})
}

// nodeOf returns a node with our finalizer after another, and our annotation.
func nodeOf(name string, deleted bool) metav1.PartialObjectMetadata {
	node := metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), ResourceVersion: "5",
			Finalizers:  []string{"example.com/f", termination.Finalizer},
			Annotations: map[string]string{termination.InstanceAnnotation: "i", "other": "o"}}}
	if deleted {
		node.DeletionTimestamp = &metav1.Time{Time: now}
	}
	return node
}

func claimOf(name, group string, deleted bool) map[string]any {
	metadata := map[string]any{"name": name, "uid": "claim-" + name, "resourceVersion": "6",
		"finalizers": []string{termination.Finalizer}}
	if deleted {
		metadata["deletionTimestamp"] = now
	}
	return map[string]any{"kind": "NodeClaim", "apiVersion": "karpenter.sh/v1", "metadata": metadata,
		"spec": map[string]any{"nodeClassRef": map[string]any{"group": group}}}
}

// leased returns the Lease of node-terminator, which lasts a second.
func leased(holder string) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "node-terminator",
		ResourceVersion: "9"}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder,
		LeaseDurationSeconds: ptr.To[int32](1), RenewTime: &metav1.MicroTime{Time: now.AddDate(100, 0, 0)}}}
}

func TestFinalizerIsTakenOffLiveNodes(t *testing.T) {
	s := &nodeServer{t: t, nodes: []metav1.PartialObjectMetadata{nodeOf("a", false), nodeOf("b", true), nodeOf("c", false),
		{ObjectMeta: metav1.ObjectMeta{Name: "d", UID: "d"}}},
		claims: []map[string]any{claimOf("a", termination.ClaimGroup, false), claimOf("c", termination.ClaimGroup, true),
			claimOf("karpenter", "karpenter.k8s.aws", false)}}
	plan, err := s.run(false)
	if err != nil || len(s.writes) > 0 || plan.Outcome() != rollback.SomethingLeft || len(plan.Steps[0].Items) != 5 {
		t.Fatalf("without --confirm: %v, writes %q\n%s", err, s.writes, plan.text(80))
	}
	plan, err = s.run(true)
	const want = `a [{"op":"test","path":"/metadata/uid","value":"uid-a"},{"op":"test","path":"/metadata/resourceVersion","value":"5"},` +
		`{"op":"test","path":"/metadata/finalizers/1","value":"exeunt.io/node-termination"},{"op":"remove","path":"/metadata/finalizers/1"},` +
		`{"op":"remove","path":"/metadata/annotations/exeunt.io~1instance"}]`
	if err != nil || len(s.writes) != 2 || s.writes[1] != want && s.writes[0] != want || plan.Outcome() != rollback.SomethingLeft {
		t.Errorf("%v, writes %q, want %s", err, s.writes, want)
	}
	text := string(plan.text(80))
	for _, left := range []string{"Node b: it is being deleted", "Node c: it is being deleted", "NodeClaim c: it is being",
		"exeunt why node/b"} {
		if !strings.Contains(strings.Join(strings.Fields(text), " "), left) {
			t.Errorf("the plan lacks %q:\n%s", left, text)
		}
	}
}

// A kubelet writes its Node between the read and the patch.
func TestFinalizerIsTakenOffInAnotherVersion(t *testing.T) {
	s := &nodeServer{t: t, nodes: []metav1.PartialObjectMetadata{nodeOf("a", false)}, conflicts: 2}
	if plan, err := s.run(true); err != nil || len(s.writes) != 1 || plan.Outcome() != rollback.NothingLeft {
		t.Errorf("%v, writes %q", err, s.writes)
	}
	s = &nodeServer{t: t, nodes: []metav1.PartialObjectMetadata{nodeOf("a", false)}, conflicts: 3}
	if plan, err := s.run(true); err != nil || len(s.writes) != 0 || plan.Outcome() != rollback.SomethingLeft {
		t.Errorf("after three conflicts: %v, writes %q", err, s.writes)
	}
}

func TestLeaderIsStoppedBeforeFinalizersGo(t *testing.T) {
	s := &nodeServer{t: t, nodes: []metav1.PartialObjectMetadata{nodeOf("a", false)}, lease: leased("node-terminator-1")}
	plan, err := s.run(true)
	if err != nil || len(s.writes) != 2 || s.writes[0] != "node-terminator" || plan.Outcome() != rollback.NothingLeft ||
		!strings.Contains(s.progress.String(), "waiting 1s until its leader has ended") {
		t.Errorf("%v, writes %q, progress %q", err, s.writes, s.progress.String())
	}
	s = &nodeServer{t: t, nodes: []metav1.PartialObjectMetadata{nodeOf("a", false), nodeOf("b", true)},
		lease: leased("node-terminator-1")}
	if plan, err := s.run(true); err != nil || len(s.writes) > 0 || plan.Outcome() != rollback.SomethingLeft {
		t.Errorf("while a node terminates: %v, writes %q", err, s.writes)
	}
}

func TestTakenLeaseKeepsReplicasAway(t *testing.T) {
	lease := leased("node-terminator-1")
	taken := takenLease(lease, now)
	if *taken.Spec.HolderIdentity != standby || *taken.Spec.LeaseDurationSeconds != 300 ||
		!taken.Spec.RenewTime.Time.Equal(now) || taken.ResourceVersion != "9" ||
		fmt.Sprint(taken.Annotations) != "map[exeunt.io/acquired-from:9]" || *lease.Spec.HolderIdentity == standby {
		t.Errorf("the Lease is %+v", taken)
	}
}
