package integration

import (
	"context"
	"errors"
	"testing"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/record"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/migration"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/intree"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/intree/reclaimer"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/metrics"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/pvcache"
	"github.com/exeunt-io/exeunt/pkg/reclaim/plugin"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// fakePlugin is a plugin that no program in the cluster has, so that only the test deletes
// its volumes. It records the calls and deletes nothing.
type fakePlugin struct{ deleted []string }

const pluginName = "kubernetes.io/fake"

func (n *fakePlugin) Name() string { return pluginName }

func (n *fakePlugin) Location(volume *v1.PersistentVolume) string {
	if volume.Spec.HostPath == nil {
		return ""
	}
	return volume.Spec.HostPath.Path
}

func (n *fakePlugin) Delete(_ context.Context, volume *v1.PersistentVolume) error {
	n.deleted = append(n.deleted, volume.Name)
	return nil
}

func (n *fakePlugin) RecyclerNamespace() string { return metav1.NamespaceDefault }

func (n *fakePlugin) RecyclerPod(volume *v1.PersistentVolume) *v1.Pod {
	path := &intree.HostPath{Recycling: intree.Recycling{Template: intree.DefaultTemplate(), MinimumTimeout: 60}}
	return path.RecyclerPod(volume)
}

// staleReclaim returns the in-tree reclaimer with the plugin, on caches that have only the
// objects.
func staleReclaim(s *harness.Session, objects ...any) (*reclaimer.Controller, *fakePlugin) {
	s.T.Helper()
	caches, err := pvcache.New(informers.NewSharedInformerFactory(s.Client, 0))
	s.Must(err, "make caches")
	plugin := &fakePlugin{}
	c, err := pvcontroller.New(pvcontroller.Config{
		Clients: pvcontroller.OneClient(s.Client), Caches: caches, Honor: true,
		Reporter:   controller.NewReporter(record.NewFakeRecorder(100)),
		Plugins:    intree.NewSet(migration.New(), plugin),
		Operations: metrics.NewOperations(),
	})
	s.Must(err, "make controller")
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
	return c.Reclaimer, plugin
}

// reclaimedOn returns the volumes that the plugin deletes on caches that have only the
// objects. The first object is the volume.
func reclaimedOn(s *harness.Session, objects ...any) []string {
	s.T.Helper()
	c, plugin := staleReclaim(s, objects...)
	if err := c.Reconcile(s.Ctx, objects[0].(*v1.PersistentVolume).Name); !errors.Is(err, controller.ErrStaleCache) {
		s.Must(err, "reclaim")
	}
	return plugin.deleted
}

// pathPair returns a volume of fakePlugin that is bound to a claim.
func pathPair(s *harness.Session, policy v1.PersistentVolumeReclaimPolicy) *v1.PersistentVolume {
	s.T.Helper()
	s.CreateVolume("pair", policy, harness.HostPath("/nowhere/"+s.Namespace), harness.ProvisionedBy(pluginName))
	s.CreateClaim("claim", s.Namespace)
	return s.AwaitBound("claim")
}

// pathWithoutClaim returns such a volume after the deletion of its claim. The pv-controller
// of the cluster does not have the plugin, so the volume is Failed.
func pathWithoutClaim(s *harness.Session, policy v1.PersistentVolumeReclaimPolicy) *v1.PersistentVolume {
	s.T.Helper()
	bound := pathPair(s, policy)
	s.DeleteClaim("claim")
	phase := v1.VolumeFailed
	if policy == v1.PersistentVolumeReclaimRetain {
		phase = v1.VolumeReleased
	}
	return s.AwaitVolume(bound.Name, "has lost its claim",
		func(v *v1.PersistentVolume) bool { return v.Status.Phase == phase })
}

func TestPluginDeletesReleasedVolumeOnce(t *testing.T) {
	s := harness.Join(t, harness.Setup{})
	over := pathWithoutClaim(s, v1.PersistentVolumeReclaimDelete)
	c, plugin := staleReclaim(s, over)
	s.Must(c.Reconcile(s.Ctx, over.Name), "reclaim")
	if err := c.Reconcile(s.Ctx,
		over.Name); !apierrors.IsConflict(err) { // it remembers the success; the cache is older than the deletion
		s.Must(err, "reclaim again")
	}
	if len(plugin.deleted) != 1 {
		t.Errorf("the plugin was called %d times, want once", len(plugin.deleted))
	}
	s.AwaitVolumeGone(over.Name)
}

const deletes = v1.PersistentVolumeReclaimDelete

var staleCaches = map[string]func(*harness.Session) []any{
	"wrong phase, no claim": func(s *harness.Session) []any {
		wrong := pathPair(s, deletes).DeepCopy()
		wrong.Status.Phase = v1.VolumeReleased
		return []any{wrong}
	},
	"old claim with another UID": func(s *harness.Session) []any {
		wrong := pathPair(s, deletes).DeepCopy()
		wrong.Status.Phase = v1.VolumeReleased
		before := s.NewClaim("claim", s.Namespace)
		before.UID = "old-uid"
		return []any{wrong, before}
	},
	"claim bound elsewhere": func(s *harness.Session) []any {
		wrong := pathPair(s, deletes).DeepCopy()
		wrong.Status.Phase = v1.VolumeReleased
		before, err := s.Client.CoreV1().PersistentVolumeClaims(s.Namespace).Get(s.Ctx, "claim", metav1.GetOptions{})
		s.Must(err, "read claim")
		before.Spec.VolumeName = "elsewhere"
		return []any{wrong, before}
	},
	"wrong phase on the server": func(s *harness.Session) []any {
		bound := pathPair(s, deletes)
		return []any{setPhase(s, bound, v1.VolumeReleased)}
	},
	"policy now Retain": func(s *harness.Session) []any {
		over := pathWithoutClaim(s, v1.PersistentVolumeReclaimRetain).DeepCopy()
		over.Spec.PersistentVolumeReclaimPolicy = deletes
		return []any{over}
	},
	"recreated volume": func(s *harness.Session) []any {
		over := pathWithoutClaim(s, deletes).DeepCopy()
		over.UID = "old-uid"
		return []any{over}
	},
	"deleted volume": func(s *harness.Session) []any {
		over := pathWithoutClaim(s, deletes)
		s.SetPolicy(over.Name, v1.PersistentVolumeReclaimRetain)
		s.DeleteVolume(over.Name)
		s.AwaitVolumeGone(over.Name)
		return []any{over}
	},
	"path contains another volume": func(s *harness.Session) []any {
		over := pathWithoutClaim(s, deletes)
		below := s.NewVolume("below", deletes, harness.HostPath(over.Spec.HostPath.Path+"/below"))
		return []any{over, below}
	},
}

func TestStaleCacheCallsNoPlugin(t *testing.T) {
	harness.Parallel(t, harness.Setup{})
	for name, prepare := range staleCaches {
		t.Run(name, func(t *testing.T) {
			s := harness.Join(t, harness.Setup{})
			if deleted := reclaimedOn(s, prepare(s)...); len(deleted) > 0 {
				t.Errorf("data was deleted: %v", deleted)
			}
		})
	}
}

func TestStaleCacheRecyclesNothing(t *testing.T) {
	harness.Parallel(t, harness.Setup{})
	recycles := v1.PersistentVolumeReclaimRecycle
	for name, prepare := range map[string]func(*harness.Session) []any{
		"wrong phase, no claim": func(s *harness.Session) []any {
			wrong := pathPair(s, recycles).DeepCopy()
			wrong.Status.Phase = v1.VolumeReleased
			return []any{wrong}
		},
		"recycler pod succeeded in cache only": func(s *harness.Session) []any {
			wrong := pathPair(s, recycles).DeepCopy()
			wrong.Status.Phase = v1.VolumeReleased
			pod := (&fakePlugin{}).RecyclerPod(wrong)
			pod.Status.Phase = v1.PodSucceeded
			return []any{wrong, pod}
		},
		"pod uses the volume": func(s *harness.Session) []any {
			wrong := pathPair(s, recycles).DeepCopy()
			wrong.Status.Phase = v1.VolumeReleased
			user := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "user"}}
			user.Spec.Volumes = []v1.Volume{{Name: "data",
				VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "claim"}}}}
			return []any{wrong, user}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := harness.Join(t, harness.Setup{})
			objects := prepare(s)
			c, _ := staleReclaim(s, objects...)
			name := objects[0].(*v1.PersistentVolume).Name
			s.Must(c.Reconcile(s.Ctx, name), "reclaim")
			now, err := s.Client.CoreV1().PersistentVolumes().Get(s.Ctx, name, metav1.GetOptions{})
			s.Must(err, "read volume")
			if now.Spec.ClaimRef == nil || now.Status.Phase != v1.VolumeBound {
				t.Errorf("the volume became Available: phase %s, claimRef %v", now.Status.Phase, now.Spec.ClaimRef)
			}
			pods, err := s.Client.CoreV1().Pods(metav1.NamespaceDefault).
				List(s.Ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + plugin.RecyclerName(now)})
			s.Must(err, "list pods")
			if len(pods.Items) > 0 {
				t.Errorf("a recycler pod was created for a bound volume")
			}
		})
	}
}
