package runner

import (
	"context"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/graceful/deadline"
	"github.com/exeunt-io/exeunt/pkg/patch"
	"github.com/exeunt-io/exeunt/pkg/reclaim"
	"github.com/exeunt-io/exeunt/pkg/reclaim/external"
	"github.com/exeunt-io/exeunt/pkg/rollback"
	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// domain begins the names of the annotations and finalizers of Exeunt.
const domain = "exeunt.io/"

// sharedFinalizers are the finalizers of volumes that upstream's programs remove as well.
var sharedFinalizers = []finalizer.Name{finalizer.External, finalizer.InTree, finalizer.VolumeProtection}

// readVolumes reads the PersistentVolumes, and decides about their annotations and finalizers.
func (s *observation) readVolumes(ctx context.Context) {
	volumes, shared := map[types.UID]*corev1.PersistentVolume{}, map[types.UID][]finalizer.Name{}
	seen := cluster.Each(ctx, s.reader, cluster.PersistentVolumes, cluster.Selection{},
		func(page []corev1.PersistentVolume) {
			for i := range page {
				shared[page[i].UID] = sharedOf(&page[i])
				s.known.addVolume(&page[i], s.options.AbandonDisk)
				if s.concerns(&page[i]) {
					volumes[page[i].UID] = &page[i]
				}
			}
		})
	s.known.volumesRead = seen
	s.own.unread, s.pending.unread = s.own.unread || !seen, !seen
	s.shared.unread = !seen && (len(s.options.Unserved) > 0 || s.options.UnservedLoops)
	s.upstreams = map[string]int{}
	for _, names := range shared {
		for _, name := range names {
			s.upstreams[string(name)]++
		}
	}
	sorted := slices.SortedFunc(maps.Values(volumes), func(a,
		b *corev1.PersistentVolume) int {
		return strings.Compare(a.Name, b.Name)
	})
	for _, volume := range sorted {
		s.addVolume(ctx, volume)
	}
}

// sharedOf returns the finalizers of the volume that upstream's programs remove as well.
func sharedOf(volume *corev1.PersistentVolume) []finalizer.Name {
	var all []finalizer.Name
	for _, name := range sharedFinalizers {
		if finalizer.Has(volume.Finalizers, name) {
			all = append(all, name)
		}
	}
	return all
}

// concerns reports whether something may have to be removed from the volume.
func (s *observation) concerns(volume *corev1.PersistentVolume) bool {
	if hasOwn(volume) {
		return true
	}
	return slices.ContainsFunc(sharedOf(volume), func(name finalizer.Name) bool { return s.namesUnserved(volume, name) })
}

// hasOwn reports whether the object has an annotation or finalizer of Exeunt.
func hasOwn(object metav1.Object) bool {
	return len(ownAnnotations(object)) > 0 || len(ownFinalizers(object)) > 0
}

// ownAnnotations returns the names of the annotations of Exeunt. That of a deadline is a copy of a custom resource's, and
// has no effect here.
func ownAnnotations(object metav1.Object) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(object.GetAnnotations())),
		func(key string) bool { return !strings.HasPrefix(key, domain) || key == deadline.Annotation })
}

// ownFinalizers returns the finalizers of Exeunt.
func ownFinalizers(object metav1.Object) []string {
	return slices.DeleteFunc(slices.Clone(object.GetFinalizers()),
		func(name string) bool { return !strings.HasPrefix(name, domain) })
}

// addOwnFinalizers adds the finalizers of Exeunt, which only a later version can have added.
func (s *observation) addOwnFinalizers(object blocker.Object, owner metav1.Object) {
	for _, name := range ownFinalizers(owner) {
		decision := rollback.Decision{Action: rollback.Refuse, Reason: rollback.LaterVersion}
		s.own.items = append(s.own.items, newItem(object, "finalizer "+name, decision, nil))
	}
}

// addVolume adds what may have to be removed from the volume.
func (s *observation) addVolume(ctx context.Context, volume *corev1.PersistentVolume) {
	object := blocker.Object{Kind: "PersistentVolume", Name: volume.Name, UID: string(volume.UID)}
	for _, key := range ownAnnotations(volume) {
		s.addVolumeAnnotation(object, volume, key)
	}
	s.addOwnFinalizers(object, volume)
	s.addSharedFinalizers(ctx, object, volume)
}

func (s *observation) addVolumeAnnotation(object blocker.Object, volume *corev1.PersistentVolume, key string) {
	state := rollback.AnnotationState{
		Server: s.serverOnce(external.DriverOf(volume)),
		Policy: storage.PolicyOf(volume.Spec.PersistentVolumeReclaimPolicy), Deleting: volume.DeletionTimestamp != nil,
		Abandoned: slices.Contains(s.options.AbandonDisk, volume.Name),
	}
	value := volume.Annotations[key]
	if key == reclaim.Annotation {
		state.Status = reclaim.StatusOf(volume)
		state.Known = state.Status != reclaim.StatusNone // a later version may have further values
	}
	decision := rollback.DecideAnnotation(state)
	remove := func(ctx context.Context) (metav1.Object, error) {
		return s.patchVolume(ctx, volume.Name, removeAnnotation(volume, key, state.Status == reclaim.StatusPending))
	}
	item := newItem(object, "annotation "+key+": "+value, decision, remove)
	item.Note = diskOf(volume)
	s.own.items = append(s.own.items, item)
	if decision.Reason == rollback.DiskWouldLeak || decision.Reason == rollback.DeletionOpen ||
		decision.Reason == rollback.ServerNotSeen && state.Status == reclaim.StatusPending && state.Deleting {
		s.pending.items = append(s.pending.items, item)
	}
}

// removeAnnotation returns the patch. exact: nothing of the object may have changed.
func removeAnnotation(object metav1.Object, key string, exact bool) *patch.Patch {
	p := patch.For(object)
	if exact {
		p = patch.ForVersion(object)
	}
	path := "/metadata/annotations/" + patch.Escape(key)
	return p.Test(path, object.GetAnnotations()[key]).Remove(path)
}

// diskOf names the disk of the volume.
func diskOf(volume *corev1.PersistentVolume) string {
	if volume.Spec.CSI == nil {
		return ""
	}
	return "disk " + volume.Spec.CSI.VolumeHandle + " of " + volume.Spec.CSI.Driver
}

func (s *observation) patchVolume(ctx context.Context, name string, p *patch.Patch) (metav1.Object, error) {
	body, err := p.Bytes()
	if err != nil {
		return nil, err
	}
	return s.reader.Kubernetes().CoreV1().PersistentVolumes().Patch(ctx, name, types.JSONPatchType, body,
		metav1.PatchOptions{})
}
