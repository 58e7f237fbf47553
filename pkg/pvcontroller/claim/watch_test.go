package claim

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/metrics"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/pvcache"
)

// Claims are reconciled once Watch has returned. With a part of the volumes in the index, a claim got a larger volume
// than it needed, or a volume was provisioned though one fits.
func TestIndexIsFilledWhenWatchReturns(t *testing.T) {
	const volumes = 500
	var objects []runtime.Object
	for i := range volumes {
		objects = append(objects, free(fmt.Sprint("v", i), "1"))
	}
	client := fake.NewClientset(objects...)
	factory := informers.NewSharedInformerFactory(client, 0)
	caches, err := pvcache.New(factory)
	if err != nil {
		t.Fatal(err)
	}
	c := New(Config{Client: client, Caches: caches, Versions: controller.NewVersions(),
		Operations: metrics.NewOperations()})
	factory.StartWithContext(t.Context())
	factory.WaitForCacheSync(t.Context().Done())
	if err := c.Watch(t.Context()); err != nil {
		t.Fatal(err)
	}
	if indexed, _ := c.index.Len(); indexed != volumes {
		t.Errorf("%d of %d volumes are in the index", indexed, volumes)
	}
}
