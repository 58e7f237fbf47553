package reclaimer

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/exeunt-io/exeunt/pkg/controller"
)

// A process that was frozen wakes up anywhere: another leader may have given the volume to a claim.
func TestFormerLeaderRemovesNoData(t *testing.T) {
	for name, volume := range map[string]*v1.PersistentVolume{
		"delete":  releasedVolume(v1.PersistentVolumeReclaimDelete),
		"recycle": releasedVolume(v1.PersistentVolumeReclaimRecycle, static),
	} {
		t.Run(name, func(t *testing.T) {
			s, frozen := newFixture(t, volume), false
			defer s.shutDown()
			s.Leading = func() bool { return !frozen }
			s.Client.(*fake.Clientset).PrependReactor("get", "persistentvolumes",
				func(clienttesting.Action) (bool, runtime.Object, error) {
					frozen = true
					return false, nil, nil
				})
			if err := s.Reconcile(context.Background(), "v"); !errors.Is(err, controller.ErrLeaseEnding) {
				t.Errorf("error %v, want %v", err, controller.ErrLeaseEnding)
			}
			pods, err := s.Client.CoreV1().Pods(metav1.NamespaceAll).List(context.Background(), metav1.ListOptions{})
			s.must(err)
			if !frozen || s.plugin.calls.Load() > 0 || len(pods.Items) > 0 || len(s.events.events) > 0 {
				t.Errorf("frozen %v, %d calls of the plugin, %d recycler pods, events %q", frozen, s.plugin.calls.Load(),
					len(pods.Items), s.events.events)
			}
		})
	}
}

// A process without leader election is frozen right after its live reads, for longer than an administrator needs to keep the
// volume, or to restore etcd.
func TestOldReadRemovesNoData(t *testing.T) {
	for name, volume := range map[string]*v1.PersistentVolume{
		"delete":  releasedVolume(v1.PersistentVolumeReclaimDelete),
		"recycle": releasedVolume(v1.PersistentVolumeReclaimRecycle, static),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, frozen := newFixture(t, volume), false
				defer s.shutDown()
				s.Client.(*fake.Clientset).PrependReactor("get", "persistentvolumes",
					func(clienttesting.Action) (bool, runtime.Object, error) {
						frozen = true
						<-time.After(10 * time.Minute)
						return false, nil, nil
					})
				if err := s.Reconcile(context.Background(), "v"); err == nil || errors.Is(err, controller.ErrStaleCache) {
					t.Errorf("error %v, want one that is logged", err)
				}
				pods, err := s.Client.CoreV1().Pods(metav1.NamespaceAll).List(context.Background(), metav1.ListOptions{})
				s.must(err)
				if !frozen || s.plugin.calls.Load() > 0 || len(pods.Items) > 0 {
					t.Errorf("frozen %v, %d calls of the plugin, %d recycler pods", frozen, s.plugin.calls.Load(), len(pods.Items))
				}
			})
		})
	}
}
