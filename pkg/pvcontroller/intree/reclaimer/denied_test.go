package reclaimer

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/intree"
	"github.com/exeunt-io/exeunt/pkg/reclaim/plugin"
)

// deniedWithNotFound is the answer of the API server if a webhook did not find something, and hands that error on.
func deniedWithNotFound(resource, name string) error {
	err := apierrors.NewNotFound(v1.Resource(resource), name)
	err.ErrStatus.Message = `admission webhook "w.example.com" denied the request: ` + resource + ` "` + name +
		`" not found`
	return err
}

// deny has a webhook deny the first requests of the kind.
func (s *fixture) deny(verb, resource, name string, count int) *int {
	requests := 0
	s.Client.(*fake.Clientset).PrependReactor(verb, resource, func(clienttesting.Action) (bool, runtime.Object, error) {
		requests++
		return requests <= count, nil, deniedWithNotFound(resource, name)
	})
	return &requests
}

func withInTree(v *v1.PersistentVolume) { v.Finalizers = []string{string(finalizer.InTree)} }

func TestDeniedRemovalOfFinalizersIsRepeated(t *testing.T) {
	s := newFixture(t, releasedVolume(v1.PersistentVolumeReclaimDelete, withInTree,
		func(v *v1.PersistentVolume) { v.DeletionTimestamp = new(metav1.Now()) }))
	queue, requests := s.Loops()[0].Step(), s.deny("patch", "persistentvolumes", "v", 1)
	for s.loop.Enqueue("v"); ; {
		due, later := queue.Keys()
		if len(due)+len(later) == 0 {
			break
		}
		queue.Reconcile(t.Context(), "v")
		s.updateCaches()
	}
	if *requests != 2 {
		t.Errorf("%d removals were requested: the volume is Terminating for ever", *requests)
	}
	if said := strings.Join(s.events.events, "; "); !strings.Contains(said,
		"Warning VolumeFailedDelete: patch volume v: admission webhook") {
		t.Errorf("events %q", said)
	}
}

// The finalizer stays, and the deletion is requested once more at most without a pause: pv-protection is added meanwhile.
func TestDeniedDeletionIsRepeatedWithBackoff(t *testing.T) {
	s := newFixture(t, releasedVolume(v1.PersistentVolumeReclaimDelete, withInTree))
	requests := s.deny("delete", "persistentvolumes", "v", 1000)
	queues := []*controller.Stepped{s.phases.Loops()[0].Step(), s.phases.Loops()[1].Step(), s.Loops()[0].Step()}
	s.phases.Enqueue("v")
	for work := true; work; {
		work = false
		for _, queue := range queues {
			if due, _ := queue.Keys(); len(due) > 0 {
				before := s.Caches.Volume("v").String()
				queue.Reconcile(t.Context(), "v")
				s.updateCaches()
				if work = true; s.Caches.Volume("v").String() != before {
					s.phases.Enqueue("v")
				}
			}
		}
	}
	if now := s.Caches.Volume("v"); *requests > 2 || !finalizer.Has(now.Finalizers, finalizer.InTree) {
		t.Errorf("%d deletions without a pause, finalizers %q", *requests, now.Finalizers)
	}
	if _, later := queues[2].Keys(); !slices.Equal(later, []string{"v"}) {
		t.Errorf("enqueued for later: %q", later)
	}
}

// The volume was given away while its data was being deleted.
func TestVolumeWithoutDataIsOfferedToNobodyAfterDenial(t *testing.T) {
	s := newFixture(t, releasedVolume(v1.PersistentVolumeReclaimDelete))
	defer s.shutDown()
	s.plugin.delete = func(context.Context) error {
		s.removeClaimRef()
		s.deny("delete", "persistentvolumes", "v", 1)
		return nil
	}
	if err := s.Reconcile(t.Context(), "v"); err == nil {
		t.Error("the denial is no error")
	}
	s.updateCaches()
	s.must(s.phases.Reconcile(t.Context(), "v"))
	s.updateCaches()
	if now := s.Caches.Volume("v"); now.Status.Phase == v1.VolumeAvailable || !s.IsScrubbed(now) {
		t.Errorf("a volume whose data is gone is %s, and claims may have it", now.Status.Phase)
	}
	s.must(s.Reconcile(t.Context(), "v"))
	if _, err := s.Client.CoreV1().PersistentVolumes().Get(t.Context(), "v",
		metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the object is still there: %v", err)
	}
}

// The pod removes data of a volume whose policy is Retain now.
func TestDeniedDeletionOfRecyclerPodIsAnError(t *testing.T) {
	volume := releasedVolume(v1.PersistentVolumeReclaimRetain)
	pod := (&intree.HostPath{}).RecyclerPod(volume)
	pod.Annotations[plugin.RecyclerAnnotation] = plugin.DataID(volume)
	s := newFixture(t, volume, pod)
	s.deny("delete", "pods", pod.Name, 1)
	if err := s.Reconcile(t.Context(), "v"); err == nil {
		t.Error("no error, and the pod goes on")
	}
	s.must(s.Reconcile(t.Context(), "v"))
	if _, err := s.Client.CoreV1().Pods(pod.Namespace).Get(t.Context(), pod.Name,
		metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the recycler pod is still there: %v", err)
	}
}

// A webhook says that the pod exists.
func TestRecyclerPodThatDoesNotExistIsReported(t *testing.T) {
	s := newFixture(t, releasedVolume(v1.PersistentVolumeReclaimRecycle))
	defer s.shutDown()
	s.Client.(*fake.Clientset).PrependReactor("create", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewAlreadyExists(v1.Resource("pods"), "recycler-for-v")
	})
	s.must(s.Reconcile(t.Context(), "v"))
	if said := strings.Join(s.events.events, "; "); !strings.Contains(said, "Warning VolumeFailedRecycle") {
		t.Errorf("events %q", said)
	}
}

// A mutating webhook undoes the write, and the answer is 200.
func TestUndoneWriteIsRepeated(t *testing.T) {
	undo := func(s *fixture) {
		s.Client.(*fake.Clientset).PrependReactor("patch", "persistentvolumes",
			func(action clienttesting.Action) (bool, runtime.Object, error) {
				return action.GetSubresource() == "", s.Caches.Volume("v").DeepCopy(), nil
			})
	}
	t.Run("finalizers", func(t *testing.T) {
		s := newFixture(t, releasedVolume(v1.PersistentVolumeReclaimDelete, withInTree,
			func(v *v1.PersistentVolume) { v.DeletionTimestamp = new(metav1.Now()) }))
		undo(s)
		if err := s.Reconcile(t.Context(), "v"); !errors.Is(err, controller.ErrTooManySteps) {
			t.Errorf("Reconcile() = %v", err)
		}
	})
	t.Run("claimRef of a recycled volume", func(t *testing.T) {
		volume := releasedVolume(v1.PersistentVolumeReclaimRecycle)
		pod := (&intree.HostPath{}).RecyclerPod(volume)
		pod.UID, pod.Status.Phase = "pod", v1.PodSucceeded
		s := newFixture(t, volume, pod)
		queue := s.Loops()[0].Step()
		undo(s)
		s.must(s.Reconcile(t.Context(), "v"))
		if _, later := queue.Keys(); !slices.Equal(later, []string{"v"}) || s.remainingBackoff("u") < firstRetry/2 {
			t.Errorf("enqueued for later: %q, backoff %s", later, s.remainingBackoff("u").Round(time.Millisecond))
		}
	})
}
