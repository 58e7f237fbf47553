package runner

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/reclaim/plugin"
	"github.com/exeunt-io/exeunt/pkg/rollback"
	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// readClaims reads the claims, and decides about their finalizers and annotations.
func (s *observation) readClaims(ctx context.Context) {
	claims := map[types.UID]*corev1.PersistentVolumeClaim{}
	seen := cluster.Each(ctx, s.reader, cluster.PersistentVolumeClaims, cluster.Selection{},
		func(page []corev1.PersistentVolumeClaim) {
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

// addClaim adds the annotations and finalizers of Exeunt on the claim. This version adds none.
func (s *observation) addClaim(claim *corev1.PersistentVolumeClaim) {
	object := blocker.Object{Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name,
		UID: string(claim.UID)}
	s.addOwnFinalizers(object, claim)
	for _, key := range ownAnnotations(claim) {
		s.own.items = append(s.own.items, newItem(object, "annotation "+key,
			rollback.DecideAnnotation(rollback.AnnotationState{}), nil))
	}
}

// provisionerOf returns the driver that creates the volume of the claim, "" for none.
func provisionerOf(claim *corev1.PersistentVolumeClaim) string {
	return cmp.Or(claim.Annotations[storage.AnnMigratedTo], storage.ClaimProvisioner(claim))
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
			return s.reader.Kubernetes().CoreV1().Pods(pod.Namespace).
				Patch(ctx, pod.Name, types.JSONPatchType, body, metav1.PatchOptions{})
		}
		decision := rollback.DecideAnnotation(rollback.AnnotationState{Known: true, Server: s.pvController().Server()})
		s.own.items = append(s.own.items, newItem(object, "annotation "+plugin.RecyclerAnnotation, decision, remove))
	}
}
