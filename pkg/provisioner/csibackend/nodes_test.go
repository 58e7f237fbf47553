package csibackend

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"github.com/exeunt-io/exeunt/pkg/topology"
)

// groups returns the distinct keys and values of the nodes.
func groups(nodes []topology.Node) []string {
	var texts []string
	for _, node := range nodes {
		if segment, found := topology.SegmentWithKeys(node.Labels, node.Keys); found && len(node.Keys) > 0 {
			texts = append(texts, string(segment))
		}
	}
	slices.Sort(texts)
	return slices.Compact(texts)
}

func TestPoolFollowsTheCaches(t *testing.T) {
	factory := informers.NewSharedInformerFactory(fake.NewClientset(), 0)
	nodes, registered := factory.Core().V1().Nodes().Informer(), factory.Storage().V1().CSINodes().Informer()
	pool, random := newNodePool("driver", nodes, registered), rand.New(rand.NewPCG(1, 1))
	change := func(store cache.Store, object metav1.Object) {
		var err error
		if err = store.Add(object); random.IntN(3) == 0 {
			err = store.Delete(object)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for range 2000 {
		name := fmt.Sprint("node-", random.IntN(6))
		if random.IntN(2) == 0 {
			change(nodes.GetStore(), newNode(name, fmt.Sprint("zone-", random.IntN(3))))
		} else {
			change(registered.GetStore(), newCSINode(name))
		}
		pool.update(name)
		except := fmt.Sprint("node-", random.IntN(7))
		pool.synced = nil
		want := groups(pool.except(except))
		pool.synced = []cache.InformerSynced{func() bool { return true }}
		if got := groups(pool.except(except)); !slices.Equal(got, want) {
			t.Fatalf("pool has %v, want %v", got, want)
		}
	}
}

func TestPoolReadsTheCachesUntilItHasSynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(newNode("a", "1"), newNode("b", "1"), newNode("c", "2"), newCSINode("a"), newCSINode("b"),
			newCSINode("c"))
		factory := informers.NewSharedInformerFactory(client, 0)
		pool := newNodePool("driver", factory.Core().V1().Nodes().Informer(), factory.Storage().V1().CSINodes().Informer())
		if err := pool.nodes.GetStore().Add(newNode("early", "3")); err != nil {
			t.Fatal(err)
		}
		if nodes := pool.except(""); pool.hasSynced() || len(nodes) != 1 || nodes[0].Labels["zone"] != "3" {
			t.Errorf("before the lists: nodes %v, synced %v", nodes, pool.hasSynced())
		}
		factory.StartWithContext(t.Context())
		factory.WaitForCacheSync(t.Context().Done())
		synctest.Wait()
		if got := groups(pool.except("c")); !pool.hasSynced() || !slices.Equal(got, []string{"zone=1"}) ||
			len(pool.except("")) != 2 {
			t.Errorf("after the lists: zones %v, nodes %v", got, pool.except(""))
		}
		moved := newNode("c", "4")
		moved.ResourceVersion = "99"
		if _, err := client.CoreV1().Nodes().Update(t.Context(), moved, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := strings.Join(groups(pool.except("")), " "); got != "zone=1 zone=4" {
			t.Errorf("after a node moved: zones %v", got)
		}
	})
}
