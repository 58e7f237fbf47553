package runner

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/patch"
	"github.com/exeunt-io/exeunt/pkg/reclaim/plugin"
	"github.com/exeunt-io/exeunt/pkg/rollback"
	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// readClaims reads the claims, and decides about their finalizers and annotations.
func (s *observation) readClaims(ctx context.Context) {
	claims := map[types.UID]*corev1.PersistentVolumeClaim{}
	seen := cluster.Each(ctx, s.reader, cluster.PersistentVolumeClaims, cluster.Selection{}, func(page []corev1.PersistentVolumeClaim) {
		for i := range page {
			s.known.addDriver(provisionerOf(&page[i]))
			if hasOwn(&page[i]) {
				claims[page[i].UID] = &page[i]
			}
		}
	})
	s.known.claimsRead = seen
	s.own.unread = s.own.unread || !seen
	byName := func(a, b *corev1.PersistentVolumeClaim) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	}
	for _, claim := range slices.SortedFunc(maps.Values(claims), byName) {
		s.addClaim(claim)
	}
}

// addClaim adds what may have to be removed from the claim.
func (s *observation) addClaim(claim *corev1.PersistentVolumeClaim) {
	object := blocker.Object{Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: string(claim.UID)}
	driver := provisionerOf(claim)
	server := s.serverOnce(driver)
	for _, name := range ownFinalizers(claim) {
		remove := func(ctx context.Context) (metav1.Object, error) {
			return s.patchClaim(ctx, claim, finalizer.Edit(patch.ForVersion(claim), claim, finalizer.Change{Remove: []finalizer.Name{finalizer.Name(name)}}))
		}
		state := rollback.ClaimFinalizerState{
			Known: name == string(finalizer.Provisioning), Server: server, Named: s.options.named(driver),
			Interrupted: claim.DeletionTimestamp != nil && claim.Spec.VolumeName == "" && driver != "",
		}
		item := newItem(object, "finalizer "+name, rollback.DecideClaimFinalizer(state), remove)
		if state.Interrupted {
			item.Note = fmt.Sprintf("look in storage for a volume of the claim UID %s, then confirm by --stopped %s", claim.UID, driver)
		}
		s.own.items = append(s.own.items, item)
	}
	for _, key := range ownAnnotations(claim) {
		decision := rollback.DecideAnnotation(rollback.AnnotationState{Server: server})
		s.own.items = append(s.own.items, newItem(object, "annotation "+key, decision, nil))
	}
}

// provisionerOf returns the driver that creates the volume of the claim, "" for none.
func provisionerOf(claim *corev1.PersistentVolumeClaim) string {
	return cmp.Or(claim.Annotations[storage.AnnMigratedTo], storage.ClaimProvisioner(claim))
}

func (s *observation) patchClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim, p *patch.Patch) (metav1.Object, error) {
	body, err := p.Bytes()
	if err != nil {
		return nil, err
	}
	return s.reader.Kubernetes().CoreV1().PersistentVolumeClaims(claim.Namespace).Patch(ctx, claim.Name, types.JSONPatchType, body, metav1.PatchOptions{})
}

// readRecycler decides about the annotation of a recycler pod.
func (s *observation) readRecycler(pod *corev1.Pod) {
	if _, is := pod.Annotations[plugin.RecyclerAnnotation]; is {
		s.recyclers[pod.UID] = pod
	}
}

// addRecyclers decides about the annotations of recycler pods. Pods must have been read.
func (s *observation) addRecyclers() {
	s.own.unread = s.own.unread || !s.programs.podsSeen
	for _, pod := range s.recyclers {
		object := blocker.Object{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: string(pod.UID)}
		remove := func(ctx context.Context) (metav1.Object, error) {
			body, err := removeAnnotation(pod, plugin.RecyclerAnnotation, false).Bytes()
			if err != nil {
				return nil, err
			}
			return s.reader.Kubernetes().CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.JSONPatchType, body, metav1.PatchOptions{})
		}
		decision := rollback.DecideAnnotation(rollback.AnnotationState{Known: true, Server: s.pvController().Server()})
		s.own.items = append(s.own.items, newItem(object, "annotation "+plugin.RecyclerAnnotation, decision, remove))
	}
}
