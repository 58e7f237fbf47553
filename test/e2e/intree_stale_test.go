package e2e

import (
	"context"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/record"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/migration"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/intree"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/metrics"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/volume"
	"github.com/exeunt-io/exeunt/pkg/reclaim"
)

// nobody is a plugin that no program in the cluster has, so that nobody but the
// test deletes its volumes. It deletes nothing and counts what it is asked.
type nobody struct{ deleted []string }

const nobodyName = "kubernetes.io/nobody"

func (n *nobody) Name() string { return nobodyName }

func (n *nobody) Location(volume *v1.PersistentVolume) string {
	if volume.Spec.HostPath == nil {
		return ""
	}
	return volume.Spec.HostPath.Path
}

func (n *nobody) Delete(_ context.Context, volume *v1.PersistentVolume) error {
	n.deleted = append(n.deleted, volume.Name)
	return nil
}

func (n *nobody) RecyclerNamespace() string { return metav1.NamespaceDefault }

func (n *nobody) RecyclerPod(volume *v1.PersistentVolume) *v1.Pod {
	path := &intree.HostPath{Recycling: intree.Recycling{Template: intree.DefaultTemplate(), MinimumTimeout: 60}}
	return path.RecyclerPod(volume)
}

// staleReclaim returns the pv-controller's volume side with the plugin, on a cache
// that knows only the objects.
func staleReclaim(s *scene, objects ...any) (*volume.Controller, *nobody) {
	s.t.Helper()
	caches, err := controller.NewCaches(informers.NewSharedInformerFactory(s.client, 0))
	s.must(err, "make caches")
	plugin := &nobody{}
	c, err := volume.New(volume.Config{
		Client: s.client, Caches: caches, Versions: controller.NewVersions(), Honor: true,
		Reporter:   controller.NewReporter(record.NewFakeRecorder(100)),
		Plugins:    intree.NewSet(migration.New(), plugin),
		Operations: metrics.NewOperations(),
		WakeClaim:  func(string) {},
	})
	s.must(err, "make controller")
	for _, object := range objects {
		switch object := object.(type) {
		case *v1.PersistentVolume:
			fill(s, caches.Volumes, object)
		case *v1.PersistentVolumeClaim:
			fill(s, caches.Claims, object)
		case *v1.Pod:
			fill(s, caches.Pods, object)
		}
	}
	return c, plugin
}

// reclaimedOn returns what the plugin deletes on a cache that knows only the objects,
// the first of which is the volume.
func (s *scene) reclaimedOn(objects ...any) []string {
	s.t.Helper()
	c, plugin := staleReclaim(s, objects...)
	s.must(c.Reclaim(s.ctx, objects[0].(*v1.PersistentVolume).Name), "reclaim")
	return plugin.deleted
}

// pathPair returns a volume of the plugin nobody that is bound to a claim.
func (s *scene) pathPair(policy v1.PersistentVolumeReclaimPolicy) *v1.PersistentVolume {
	s.t.Helper()
	s.createVolume("pair", policy, hostPath("/nowhere/"+s.namespace), provisionedBy(nobodyName))
	s.createClaim("claim", s.namespace)
	return s.awaitBound("claim")
}

// pathOver returns such a volume whose claim is gone. The cluster's own pv-controller
// does not know the plugin, so it has failed.
func (s *scene) pathOver(policy v1.PersistentVolumeReclaimPolicy) *v1.PersistentVolume {
	s.t.Helper()
	bound := s.pathPair(policy)
	s.deleteClaim("claim")
	phase := v1.VolumeFailed
	if policy == v1.PersistentVolumeReclaimRetain {
		phase = v1.VolumeReleased
	}
	return s.awaitVolume(bound.Name, "is over", func(v *v1.PersistentVolume) bool { return v.Status.Phase == phase })
}

func TestAPluginIsCalledForAVolumeWhoseClaimIsGone(t *testing.T) {
	t.Parallel()
	s := enter(t, shared(t, setup{honor: true}))
	over := s.pathOver(v1.PersistentVolumeReclaimDelete)
	c, plugin := staleReclaim(s, over)
	for range 2 { // its success is remembered
		s.must(c.Reclaim(s.ctx, over.Name), "reclaim")
	}
	if len(plugin.deleted) != 1 {
		t.Errorf("the plugin was called %d times, want once", len(plugin.deleted))
	}
	s.awaitVolumeGone(over.Name)
}

func TestAPluginIsNotCalledOnTheWordOfACache(t *testing.T) {
	deletes := v1.PersistentVolumeReclaimDelete
	for name, prepare := range map[string]func(*scene) []any{
		"a wrong phase and no claim": func(s *scene) []any {
			wrong := s.pathPair(deletes).DeepCopy()
			wrong.Status.Phase = v1.VolumeReleased
			return []any{wrong}
		},
		"a claim of the same name with another UID, from before": func(s *scene) []any {
			wrong := s.pathPair(deletes).DeepCopy()
			wrong.Status.Phase = v1.VolumeReleased
			before := s.newClaim("claim", s.namespace)
			before.UID = "of-another-life"
			return []any{wrong, before}
		},
		"a claim from before it was bound here": func(s *scene) []any {
			wrong := s.pathPair(deletes).DeepCopy()
			wrong.Status.Phase = v1.VolumeReleased
			before, err := s.client.CoreV1().PersistentVolumeClaims(s.namespace).Get(s.ctx, "claim", metav1.GetOptions{})
			s.must(err, "read claim")
			before.Spec.VolumeName = "elsewhere"
			return []any{wrong, before}
		},
		"the server's phase is wrong too, and the claim lives": func(s *scene) []any {
			bound := s.pathPair(deletes)
			return []any{s.setPhase(bound, v1.VolumeReleased)}
		},
		"the policy was turned to Retain meanwhile": func(s *scene) []any {
			over := s.pathOver(v1.PersistentVolumeReclaimRetain).DeepCopy()
			over.Spec.PersistentVolumeReclaimPolicy = deletes
			return []any{over}
		},
		"a volume of another life": func(s *scene) []any {
			over := s.pathOver(deletes).DeepCopy()
			over.UID = "of-another-life"
			return []any{over}
		},
		"a volume that is gone": func(s *scene) []any {
			over := s.pathOver(deletes)
			s.setPolicy(over.Name, v1.PersistentVolumeReclaimRetain)
			s.deleteVolume(over.Name)
			s.awaitVolumeGone(over.Name)
			return []any{over}
		},
		"another volume has its data below": func(s *scene) []any {
			over := s.pathOver(deletes)
			below := s.newVolume("below", deletes, hostPath(over.Spec.HostPath.Path+"/below"))
			return []any{over, below}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := enter(t, shared(t, setup{honor: true}))
			if deleted := s.reclaimedOn(prepare(s)...); len(deleted) > 0 {
				t.Errorf("data was deleted: %v", deleted)
			}
		})
	}
}

func TestNothingIsScrubbedNorGivenAwayOnTheWordOfACache(t *testing.T) {
	recycles := v1.PersistentVolumeReclaimRecycle
	for name, prepare := range map[string]func(*scene) []any{
		"a wrong phase and no claim": func(s *scene) []any {
			wrong := s.pathPair(recycles).DeepCopy()
			wrong.Status.Phase = v1.VolumeReleased
			return []any{wrong}
		},
		"a pod that the cache takes for succeeded": func(s *scene) []any {
			wrong := s.pathPair(recycles).DeepCopy()
			wrong.Status.Phase = v1.VolumeReleased
			pod := (&nobody{}).RecyclerPod(wrong)
			pod.Status.Phase = v1.PodSucceeded
			return []any{wrong, pod}
		},
		"a pod that still uses the volume": func(s *scene) []any {
			wrong := s.pathPair(recycles).DeepCopy()
			wrong.Status.Phase = v1.VolumeReleased
			user := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "user"}}
			user.Spec.Volumes = []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "claim"}}}}
			return []any{wrong, user}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := enter(t, shared(t, setup{honor: true}))
			objects := prepare(s)
			c, _ := staleReclaim(s, objects...)
			name := objects[0].(*v1.PersistentVolume).Name
			s.must(c.Reclaim(s.ctx, name), "reclaim")
			now, err := s.client.CoreV1().PersistentVolumes().Get(s.ctx, name, metav1.GetOptions{})
			s.must(err, "read volume")
			if now.Spec.ClaimRef == nil || now.Status.Phase != v1.VolumeBound {
				t.Errorf("the volume was given away: phase %s, claimRef %v", now.Status.Phase, now.Spec.ClaimRef)
			}
			pods, err := s.client.CoreV1().Pods(metav1.NamespaceDefault).List(s.ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + reclaim.RecyclerName(now)})
			s.must(err, "list pods")
			if len(pods.Items) > 0 {
				t.Errorf("a recycler pod was made for a bound volume")
			}
		})
	}
}
