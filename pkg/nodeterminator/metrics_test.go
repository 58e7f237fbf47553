package nodeterminator

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/exeunt-io/exeunt/pkg/termination"
)

func TestInvalidDeadlinesAreCounted(t *testing.T) {
	invalid := claimWith("claimed", termination.ClaimGroup, "9999999h")
	c := &Controller{caches: &Caches{Nodes: cache.NewSharedIndexInformer(&cache.ListWatch{}, &v1.Node{}, 0, cache.Indexers{})},
		Config: Config{Claims: claimsRead(t, invalid)}}
	for name, change := range map[string]func(*v1.Node){
		"valid":      func(*v1.Node) {},
		"unlabeled":  func(n *v1.Node) { n.Labels = nil },
		"unreadable": func(n *v1.Node) { n.Labels[termination.Label] = "1d" },
		"claimed":    func(*v1.Node) {},
		"karpenters": func(n *v1.Node) { n.Labels[termination.Label], n.Labels[karpenterPool] = "1d", "default" },
	} {
		n := labeledNode()
		n.Name = name
		change(n)
		if err := c.caches.Nodes.GetStore().Add(n); err != nil {
			t.Fatal(err)
		}
	}
	if count := c.invalidDeadlines(); count != 2 {
		t.Errorf("%d deadlines count as invalid, want those of unreadable and claimed", count)
	}
}
