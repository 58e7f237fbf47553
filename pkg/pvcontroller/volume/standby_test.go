package volume

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/exeunt-io/exeunt/pkg/pvcontroller/pvcache"
)

func TestStandbyEnqueuesNoVolume(t *testing.T) {
	factory := informers.NewSharedInformerFactory(fake.NewClientset(deleting(v1.VolumeAvailable)), 0)
	caches, err := pvcache.New(factory)
	if err != nil {
		t.Fatal(err)
	}
	c, _ := newControllers(t, fake.NewClientset(), caches, &recorder{})
	before := added(t, "volumes")
	factory.StartWithContext(t.Context())
	factory.WaitForCacheSync(t.Context().Done())
	if now := added(t, "volumes"); now != before {
		t.Errorf("%v keys were enqueued on standby", now-before)
	}
	if err := c.Watch(t.Context()); err != nil {
		t.Fatal(err)
	}
	if now := added(t, "volumes"); now != before+1 {
		t.Errorf("%v keys were enqueued by Watch, want 1", now-before)
	}
}
