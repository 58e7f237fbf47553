package storage

import (
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/blocker/volume"
	"github.com/exeunt-io/exeunt/pkg/why/chain"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/cluster/clustertest"
	"github.com/exeunt-io/exeunt/pkg/why/holder"
)

// readerOnly is an Explorer of which the reader alone is used.
type readerOnly struct {
	chain.Explorer
	reader *cluster.Reader
}

func (r readerOnly) Reader() *cluster.Reader { return r.reader }

// oneNode returns a reader of a cluster whose only node is ready.
func oneNode(t *testing.T, name string) *cluster.Reader {
	t.Helper()
	node := corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady,
			Status: corev1.ConditionTrue}}},
	}
	return answering(t, corev1.NodeList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}, Items: []corev1.Node{node}})
}

// answering returns a reader of an API server that answers each request with the object.
func answering(t *testing.T, object any) *cluster.Reader {
	t.Helper()
	return clustertest.NewReader(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(object); err != nil {
			t.Error(err)
		}
	})
}

func TestVolumeOfGoneNodeIsNotDeleted(t *testing.T) {
	perNode := holder.Container{Image: "r/csi-provisioner:v6.3.0", Args: []string{"--node-deployment"}, Serves: true}
	guessed := perNode
	guessed.Serves, guessed.Guessed = false, true
	central := holder.Container{Image: "r/csi-provisioner:v6.3.0", Serves: true}
	for name, tc := range map[string]struct {
		containers []holder.Container
		node       string
		want       volume.Fact
	}{
		"its node is there":                     {[]holder.Container{perNode}, "own", volume.Yes},
		"its node is gone":                      {[]holder.Container{perNode}, "other", volume.No},
		"nothing tells whom the program serves": {[]holder.Container{guessed}, "other", volume.Unseen},
		"one provisioner for all nodes":         {[]holder.Container{central}, "other", volume.Yes},
		"one of each":                           {[]holder.Container{perNode, central}, "other", volume.Yes},
		"no provisioner was seen":               {nil, "other", volume.Yes},
	} {
		t.Run(name, func(t *testing.T) {
			v := &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{NodeAffinity: &corev1.VolumeNodeAffinity{
				Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
					{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{"own"}},
				}}}},
			}}}
			r := &reclaimed{
				volumeChain: &volumeChain{subject: subject[corev1.PersistentVolume]{readerOnly{reader: oneNode(t, tc.node)}, nil,
					v}},
				finding: holder.Finding{Containers: tc.containers},
			}
			r.observeNode(t.Context())
			if r.state.Node != tc.want {
				t.Errorf("a node of the volume: %v, want %v", r.state.Node, tc.want)
			}
		})
	}
}

// A cluster has thousands of nodes, each with the names of its images.
func TestOfNodesTheirLabelsAreKept(t *testing.T) {
	const count = 2000
	list := corev1.NodeList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}
	for i := range count {
		list.Items = append(list.Items, corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", i),
			Labels: map[string]string{"host": fmt.Sprint(i)}}, Status: corev1.NodeStatus{
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			Images:     []corev1.ContainerImage{{Names: []string{strings.Repeat("x", 10<<10)}}}}})
	}
	text, err := json.Marshal(&list)
	if err != nil {
		t.Fatal(err)
	}
	e := explorer{reader: clustertest.NewReader(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(text)
	})}
	heap := func() int {
		runtime.GC()
		runtime.GC() // what a pool has had is kept for one
		var memory runtime.MemStats
		runtime.ReadMemStats(&memory)
		return int(memory.HeapAlloc)
	}
	before := heap()
	v := newVolume(corev1.VolumeReleased, "data")
	v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "host", Operator: corev1.NodeSelectorOpIn, Values: []string{"1999"}}}}}}}
	r := &reclaimed{volumeChain: &volumeChain{subject: subject[corev1.PersistentVolume]{e, nil, v}},
		finding: holder.Finding{Containers: []holder.Container{{Serves: true, Args: []string{"--node-deployment"}}}}}
	r.observeNode(t.Context())
	if kept := heap() - before; r.state.Node != volume.Yes || kept > 4<<20 {
		t.Errorf("the node is seen: %v; %d MiB are kept of %d nodes", r.state.Node, kept>>20, count)
	}
	runtime.KeepAlive(e.reader)
	runtime.KeepAlive(text)
}
