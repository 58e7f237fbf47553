package storage

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/why/chain"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

const (
	// classProtection keeps a VolumeAttributesClass while volumes or claims name it.
	classProtection = "kubernetes.io/vac-protection"
	// devicesProtection keeps a ResourceClaim while its devices are allocated.
	devicesProtection = "resource.kubernetes.io/delete-protection"
)

// maxUsers is how many users of an object are named.
const maxUsers = 10

// explainAttributesClass returns what the deletion of a VolumeAttributesClass waits for.
func explainAttributesClass(ctx context.Context, e chain.Explorer,
	object *unstructured.Unstructured) []blocker.Blocker {
	return explainUsers(ctx, e, object, classProtection, usersOfClass)
}

// explainDevices returns what the deletion of a ResourceClaim waits for.
func explainDevices(ctx context.Context, e chain.Explorer, object *unstructured.Unstructured) []blocker.Blocker {
	return explainUsers(ctx, e, object, devicesProtection, podsOfDevices)
}

// explainUsers explains an object whose finalizer protects it as long as users finds some.
func explainUsers(ctx context.Context, e chain.Explorer, object *unstructured.Unstructured, protection string,
	users func(context.Context, chain.Explorer, *unstructured.Unstructured) ([]blocker.Blocker, bool),
) []blocker.Blocker {
	var all []blocker.Blocker
	for _, name := range object.GetFinalizers() {
		if name != protection {
			all = append(all, e.Finalizer(ctx, object, name))
			continue
		}
		found, seen := users(ctx, e, object)
		for i := range found {
			found[i].Finalizer, found[i].Reason, found[i].Verdict = name, blocker.InUse, blocker.Waiting
		}
		if len(found) > 0 {
			all = append(all, found...)
			continue
		}
		b := e.Finalizer(ctx, object, name)
		if !seen {
			b.Reason, b.Verdict = blocker.InUse, blocker.Unknown
		}
		all = append(all, b)
	}
	return all
}

// usersOfClass returns the volumes and claims that name the class, and whether all were seen.
func usersOfClass(ctx context.Context, e chain.Explorer, class *unstructured.Unstructured) ([]blocker.Blocker, bool) {
	found := readClassUsers(ctx, e)
	var users []blocker.Blocker
	for _, user := range found.users[class.GetName()] {
		users = append(users, user.blocker(ctx, e, class, user.object))
	}
	return users, found.seen
}

// namedClass is a claim or volume that names a class.
type namedClass struct {
	classUser
	object metav1.Object
}

// classUsers are the first claims and volumes that name a class, by its name.
type classUsers struct {
	users map[string][]namedClass
	seen  bool
}

// add notes that the object names the class. Pages are not kept.
func (c *classUsers) add(name *string, by classUser, object interface {
	metav1.Object
	runtime.Object
}) {
	if name == nil || len(c.users[*name]) == maxUsers ||
		slices.ContainsFunc(c.users[*name], func(known namedClass) bool { return known.object.GetUID() == object.GetUID() }) {
		return
	}
	if kept, is := object.DeepCopyObject().(metav1.Object); is {
		c.users[*name] = append(c.users[*name], namedClass{by, kept})
	}
}

// readClassUsers reads all claims and volumes, once for all classes.
func readClassUsers(ctx context.Context, e chain.Explorer) *classUsers {
	return cluster.Remember(e.Reader(), "users of attributes classes", func(r *cluster.Reader) *classUsers {
		found := &classUsers{users: map[string][]namedClass{}}
		ofClaims := classUser{"PersistentVolumeClaim", "pvc", "volumeAttributesClassName"}
		modifies := classUser{"PersistentVolumeClaim", "pvc", "status.modifyVolumeStatus.targetVolumeAttributesClassName"}
		claimsSeen := cluster.Each(ctx, r, cluster.PersistentVolumeClaims, cluster.Selection{},
			func(page []corev1.PersistentVolumeClaim) {
				for i := range page {
					claim := &page[i]
					found.add(claim.Spec.VolumeAttributesClassName, ofClaims, claim)
					found.add(claim.Status.CurrentVolumeAttributesClassName, ofClaims, claim)
					if modified := claim.Status.ModifyVolumeStatus; modified != nil {
						found.add(&modified.TargetVolumeAttributesClassName, modifies, claim)
					}
				}
			})
		ofVolumes := classUser{"PersistentVolume", "pv", "spec.volumeAttributesClassName"}
		volumesSeen := cluster.Each(ctx, r, cluster.PersistentVolumes, cluster.Selection{},
			func(page []corev1.PersistentVolume) {
				for i := range page {
					found.add(page[i].Spec.VolumeAttributesClassName, ofVolumes, &page[i])
				}
			})
		found.seen = claimsSeen && volumesSeen
		return found
	})
}

// classUser is a kind whose objects name a class in the field; resource is for kubectl.
type classUser struct{ kind, resource, field string }

// blocker returns the blocker of a claim or volume that names the class.
func (u classUser) blocker(ctx context.Context, e chain.Explorer, class *unstructured.Unstructured,
	typed metav1.Object) blocker.Blocker {
	object := blocker.Object{Kind: u.kind, Namespace: typed.GetNamespace(), Name: typed.GetName(),
		UID: string(typed.GetUID())}
	b := blocker.Blocker{
		Object: object, Holder: "the user of " + object.String(), Since: askedAt(class),
		Evidence: []blocker.Evidence{evidence(blocker.FromField, "%s of %s is %s", u.field, object, class.GetName())},
		Next: cluster.Steps("change the class of the claim, or delete the claim",
			e.Commands().Kubectl(object.Namespace, "get", u.resource, object.Name)),
	}
	if !isDeleted(typed) {
		return b
	}
	converted, err := toUnstructured("v1", u.kind, typed)
	if err != nil {
		e.Reader().Note("could not read %s: %v", object, err)
		return b
	}
	return explainDeleted(ctx, e, b, converted, u.resource)
}

// podsOfDevices returns the pods that have reserved the ResourceClaim.
func podsOfDevices(ctx context.Context, e chain.Explorer, claim *unstructured.Unstructured) ([]blocker.Blocker, bool) {
	reserved, _, _ := unstructured.NestedSlice(claim.Object, "status", "reservedFor")
	var users []blocker.Blocker
	for _, item := range reserved {
		consumer, _ := item.(map[string]any)
		resource, _, _ := unstructured.NestedString(consumer, "resource")
		name, _, _ := unstructured.NestedString(consumer, "name")
		uid, _, _ := unstructured.NestedString(consumer, "uid")
		b := blocker.Blocker{
			Object: blocker.Object{Kind: resource, Namespace: claim.GetNamespace(), Name: name, UID: uid}, Since: askedAt(claim),
			Holder:   resource + " " + claim.GetNamespace() + "/" + name,
			Evidence: []blocker.Evidence{evidence(blocker.FromField, "status.reservedFor names %s %s", resource, name)},
			Next: giveUp(e, "the devices are given back once their user is gone", "what runs there ends",
				claim.GetNamespace(), resource, name),
		}
		if resource == "pods" {
			b.Object.Kind, b.Holder = "Pod", "pod "+claim.GetNamespace()+"/"+name
			ref := cluster.Ref{Resource: corev1.SchemeGroupVersion.WithResource("pods"), Kind: "Pod",
				Namespace: claim.GetNamespace(), Name: name}
			if pod, presence, _ := e.Reader().Live(ctx, ref); presence == cluster.Present && pod.GetDeletionTimestamp() != nil {
				b = explainDeleted(ctx, e, b, pod, "pod")
			}
		}
		users = append(users, b)
	}
	return users, true
}
