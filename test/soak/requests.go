package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// keySet are the keys of a history.
type keySet struct {
	mu   sync.Mutex
	keys []string
}

func (k *keySet) add(keys ...string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, key := range keys {
		if !slices.Contains(k.keys, key) {
			k.keys = append(k.keys, key)
		}
	}
}

func (k *keySet) all() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.keys)
}

var diskQuantity = v1.ResourceList{v1.ResourceStorage: *resource.NewQuantity(diskSize, resource.BinarySI)}

// newClaim returns a claim.
func newClaim(namespace, name, class string) *v1.PersistentVolumeClaim {
	return &v1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1.PersistentVolumeClaimSpec{
			StorageClassName: &class,
			AccessModes:      []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce},
			Resources:        v1.VolumeResourceRequirements{Requests: diskQuantity},
		},
	}
}

// createClaim creates a claim. It waits for the end of an older claim of the name; a claim
// that this request created and whose answer was lost counts as created.
func (lc *lifecycle) createClaim(ctx context.Context,
	claim *v1.PersistentVolumeClaim) (*v1.PersistentVolumeClaim, error) {
	lc.keys.add("claim " + claim.Namespace + "/" + claim.Name)
	var created *v1.PersistentVolumeClaim
	err := lc.do(ctx, "create claim "+claim.Name, func(ctx context.Context, client kubernetes.Interface) error {
		var err error
		created, err = client.CoreV1().PersistentVolumeClaims(claim.Namespace).Create(ctx, claim, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			existing, readErr := client.CoreV1().PersistentVolumeClaims(claim.Namespace).
				Get(ctx, claim.Name, metav1.GetOptions{})
			if readErr == nil && existing.DeletionTimestamp == nil {
				created, err = existing, nil
			}
		}
		return err
	})
	if err == nil {
		lc.keys.add("disk pvc-"+string(created.UID), "pv pvc-"+string(created.UID))
	}
	return created, err
}

// createStatic creates a disk and the PersistentVolume for it, which only the claim can bind.
func (lc *lifecycle) createStatic(ctx context.Context, claim *v1.PersistentVolumeClaim) error {
	var handle string
	err := lc.do(ctx, "create disk", func(ctx context.Context, _ kubernetes.Interface) (err error) {
		handle, err = lc.world.disks.create(ctx, lc.name)
		return err
	})
	if err != nil {
		return err
	}
	claim.Spec.StorageClassName, claim.Spec.VolumeName = ptr.To(""), lc.name
	lc.keys.add("pv "+lc.name, "disk "+lc.name, "disk "+handle)
	driver := lc.world.disks.driver.DriverName
	volume := &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: lc.name,
			Annotations: map[string]string{storage.AnnDynamicallyProvisioned: driver}},
		Spec: v1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: policyOf(lc.Retain),
			AccessModes:                   claim.Spec.AccessModes,
			Capacity:                      diskQuantity,
			PersistentVolumeSource: v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: driver,
				VolumeHandle: handle}},
		},
	}
	return lc.do(ctx, "create volume "+lc.name, func(ctx context.Context, client kubernetes.Interface) error {
		_, err := client.CoreV1().PersistentVolumes().Create(ctx, volume, metav1.CreateOptions{})
		return ignore(err, apierrors.IsAlreadyExists)
	})
}

// selectNode selects the node of a claim, as the scheduler does.
func (lc *lifecycle) selectNode(ctx context.Context, claim *v1.PersistentVolumeClaim) error {
	body := fmt.Appendf(nil, `{"metadata":{"uid":%q,"annotations":{%q:%q}}}`, claim.UID, storage.AnnSelectedNode, nodeName)
	return lc.do(ctx, "select the node of claim "+claim.Name, func(ctx context.Context,
		client kubernetes.Interface) error {
		_, err := client.CoreV1().PersistentVolumeClaims(claim.Namespace).
			Patch(ctx, claim.Name, types.MergePatchType, body, metav1.PatchOptions{})
		return ignore(err, apierrors.IsNotFound, apierrors.IsConflict)
	})
}

// keepSelecting selects the node whenever no node is selected, until ctx ends.
func (lc *lifecycle) keepSelecting(ctx context.Context, claim *v1.PersistentVolumeClaim) {
	for ctx.Err() == nil {
		now := lc.view.claim(claim.Namespace + "/" + claim.Name)
		if now != nil && now.UID == claim.UID && now.Annotations[storage.AnnSelectedNode] == "" {
			_ = lc.selectNode(ctx, claim) // the loop repeats it
		}
		sandbox.Pause(ctx, 2*retryDelay)
	}
}

// createPod creates a running pod that uses the claim and has its name.
func (lc *lifecycle) createPod(ctx context.Context, claim *v1.PersistentVolumeClaim) error {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: claim.Namespace, Name: claim.Name},
		Spec: v1.PodSpec{
			NodeName:   nodeName,
			Containers: []v1.Container{{Name: "main", Image: "image"}},
			Volumes: []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{
				PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name},
			}}},
		},
	}
	lc.keys.add("pod " + claim.Namespace + "/" + claim.Name)
	return lc.do(ctx, "create pod", func(ctx context.Context, client kubernetes.Interface) error {
		_, err := client.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
		return ignore(err, apierrors.IsAlreadyExists)
	})
}

// deletePod deletes a pod gracefully and then ends it, as the kubelet does.
func (lc *lifecycle) deletePod(ctx context.Context, namespace, name string) error {
	for _, grace := range []int64{30, 0} {
		err := lc.do(ctx, "delete pod", func(ctx context.Context, client kubernetes.Interface) error {
			err := client.CoreV1().Pods(namespace).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &grace})
			return ignore(err, apierrors.IsNotFound)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// deleteClaim deletes the claim of this UID.
func (lc *lifecycle) deleteClaim(ctx context.Context, claim *v1.PersistentVolumeClaim) error {
	return lc.do(ctx, "delete claim "+claim.Name, func(ctx context.Context, client kubernetes.Interface) error {
		err := client.CoreV1().PersistentVolumeClaims(claim.Namespace).
			Delete(ctx, claim.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: preconditions(claim.UID)}})
		return ignore(err, apierrors.IsNotFound, apierrors.IsConflict)
	})
}

// deleteVolume deletes the PersistentVolume.
func (lc *lifecycle) deleteVolume(ctx context.Context, volume *v1.PersistentVolume) error {
	return lc.do(ctx, "delete volume "+volume.Name, func(ctx context.Context, client kubernetes.Interface) error {
		err := client.CoreV1().PersistentVolumes().Delete(ctx, volume.Name,
			metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: preconditions(volume.UID)}})
		return ignore(err, apierrors.IsNotFound)
	})
}

// setPolicy changes the reclaim policy of a volume that may be gone.
func (lc *lifecycle) setPolicy(ctx context.Context, name string, policy v1.PersistentVolumeReclaimPolicy) error {
	body := fmt.Appendf(nil, `{"spec":{"persistentVolumeReclaimPolicy":%q}}`, policy)
	return lc.do(ctx, "set policy "+string(policy)+" of volume "+name,
		func(ctx context.Context, client kubernetes.Interface) error {
			_, err := client.CoreV1().PersistentVolumes().Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{})
			return ignore(err, apierrors.IsNotFound)
		})
}

// runClone clones the volume of a claim and deletes the source while the clone is created.
func (lc *lifecycle) runClone(ctx context.Context) error {
	source, err := lc.create(ctx, lc.name)
	if err != nil {
		return err
	}
	first, err := lc.bind(ctx, source)
	if err != nil {
		return err
	}
	wanted := newClaim(lc.space, lc.name+"-clone", classDelete)
	wanted.Spec.DataSource = &v1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: source.Name}
	clone, err := lc.createClaim(ctx, wanted)
	if err != nil {
		return err
	}
	other := &lifecycle{Choices: Choices{Sort: Dynamic, Order: lc.Order, Pause: lc.Pause}, world: lc.world, view: lc.view,
		watch: lc.watch, name: clone.Name, space: lc.space, keys: lc.keys}
	if lc.Order == AtOnce { // the clone may never be created
		if err := lc.deleteClaim(ctx, source); err != nil {
			return err
		}
		err = other.deleteEarly(ctx, clone)
	} else {
		err = other.bindAndDelete(ctx, clone)
	}
	lc.volumes += other.volumes
	if err != nil {
		return err
	}
	return lc.delete(ctx, source, first)
}

// bindAndDelete waits until the claim is bound, and deletes claim and volume.
func (lc *lifecycle) bindAndDelete(ctx context.Context, claim *v1.PersistentVolumeClaim) error {
	volume, err := lc.bind(ctx, claim)
	if err != nil {
		return err
	}
	return lc.delete(ctx, claim, volume)
}

// runSpaced creates claims in a namespace of its own, and deletes the namespace.
func (lc *lifecycle) runSpaced(ctx context.Context) error {
	lc.space = strings.ToLower(lc.name)
	err := lc.do(ctx, "create namespace "+lc.space, func(ctx context.Context, client kubernetes.Interface) error {
		return createNamespace(ctx, client, lc.space)
	})
	if err != nil {
		return err
	}
	var volumes []*v1.PersistentVolume
	var claims []*v1.PersistentVolumeClaim
	for _, name := range []string{"one", "two"} {
		claim, err := lc.create(ctx, name)
		if err != nil {
			return err
		}
		claims = append(claims, claim)
	}
	for _, claim := range claims[:lc.awaited()] {
		volume, err := lc.bind(ctx, claim)
		if err != nil {
			return err
		}
		volumes = append(volumes, volume)
	}
	if lc.Pod {
		if err := lc.createPod(ctx, claims[0]); err != nil {
			return err
		}
	}
	return lc.deleteSpace(ctx, claims, volumes)
}

// awaited returns for how many claims of its namespace the lifecycle waits.
func (lc *lifecycle) awaited() int {
	if lc.Early {
		return 0
	}
	return 2
}

// deleteSpace deletes the namespace, and waits until claims and volumes are gone.
func (lc *lifecycle) deleteSpace(ctx context.Context, claims []*v1.PersistentVolumeClaim,
	volumes []*v1.PersistentVolume) error {
	err := lc.do(ctx, "delete namespace "+lc.space, func(ctx context.Context, client kubernetes.Interface) error {
		return ignore(client.CoreV1().Namespaces().Delete(ctx, lc.space, metav1.DeleteOptions{}), apierrors.IsNotFound,
			apierrors.IsConflict)
	})
	if err != nil {
		return err
	}
	for _, claim := range claims {
		if err := lc.untilClaimGone(ctx, claim); err != nil {
			return err
		}
	}
	for _, volume := range volumes {
		if err := lc.end(ctx, volume); err != nil {
			return err
		}
	}
	return nil
}
