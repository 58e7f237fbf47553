package load

import (
	"context"
	"fmt"
	"iter"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

const (
	// background is the namespace of the pairs that exist in a full cluster.
	background = "background"
	// foreign is the driver of most of these pairs. One of ownShare is of the measured driver.
	foreign  = "csi.somebody-else.example.com"
	ownShare = 50
)

// Fill creates bound pairs of volume and claim with the numbers from first to last - 1. No
// program may run. One pair of each driver is created through the API server, and the others
// are copies of it in etcd: a cluster of 200,000 pairs takes minutes, not an hour.
func Fill(ctx context.Context, cluster *Cluster, first, last int) error {
	client, err := kubernetes.NewForConfig(cluster.Client(Admin, ""))
	if err != nil {
		return fmt.Errorf("connect to fill the cluster: %w", err)
	}
	if err := createNamespace(ctx, client, background); err != nil {
		return err
	}
	own, err := createPattern(ctx, client, first, driverName)
	if err != nil || first+1 >= last {
		return err
	}
	others, err := createPattern(ctx, client, first+1, foreign)
	if err != nil {
		return err
	}
	if err := cluster.Plane.Store(ctx, copies(own, others, first, last)); err != nil {
		return fmt.Errorf("fill the cluster: %w", err)
	}
	return awaitServed(ctx, client, claimName(last-1))
}

// awaitServed waits until the caches of the API server have the pair that was stored last.
func awaitServed(ctx context.Context, client kubernetes.Interface, name string) error {
	claims, volumes := client.CoreV1().PersistentVolumeClaims(background), client.CoreV1().PersistentVolumes()
	volume, err := volumes.Get(ctx, background+"-"+name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read volume: %w", err)
	}
	fresh := metav1.ListOptions{Limit: 1, ResourceVersion: volume.ResourceVersion,
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan}
	for _, list := range []func() error{
		func() error { _, err := claims.List(ctx, fresh); return err },
		func() error { _, err := volumes.List(ctx, fresh); return err },
	} {
		err := list()
		for apierrors.IsTimeout(err) { // the cache is behind
			err = list()
		}
		if err != nil {
			return fmt.Errorf("wait until the API server has all pairs: %w", err)
		}
	}
	return nil
}

// pair is a claim with its volume.
type pair struct {
	claim  *v1.PersistentVolumeClaim
	volume *v1.PersistentVolume
}

// createPattern creates a pair and returns it as the API server has stored it.
func createPattern(ctx context.Context, client kubernetes.Interface, number int, driver string) (p pair, err error) {
	name := claimName(number)
	volume, err := createPair(ctx, client, background, name, driver, true)
	if err != nil {
		return p, err
	}
	if p.claim, err = client.CoreV1().PersistentVolumeClaims(background).Get(ctx, name, metav1.GetOptions{}); err != nil {
		return p, fmt.Errorf("read claim: %w", err)
	}
	if p.volume, err = client.CoreV1().PersistentVolumes().Get(ctx, volume, metav1.GetOptions{}); err != nil {
		return p, fmt.Errorf("read volume: %w", err)
	}
	return p, nil
}

// copies returns what etcd stores of the pairs with the numbers after the two patterns.
func copies(own, others pair, first, last int) iter.Seq2[sandbox.Stored, error] {
	return func(yield func(sandbox.Stored, error) bool) {
		for number := first + 2; number < last; number++ {
			pattern := others
			if (number-first)%ownShare == 0 {
				pattern = own
			}
			p := pattern.numbered(number)
			if !yield(stored("persistentvolumeclaims/"+background, p.claim)) || !yield(stored("persistentvolumes", p.volume)) {
				return
			}
		}
	}
}

// numbered returns a copy of the pair with another name and UID.
func (p pair) numbered(number int) pair {
	claim, volume := p.claim.DeepCopy(), p.volume.DeepCopy()
	claim.Name = claimName(number)
	claim.UID, claim.ResourceVersion = uuid.NewUUID(), ""
	claim.Labels[instanceLabel] = claim.Name
	claim.Spec.VolumeName = background + "-" + claim.Name
	volume.Name, volume.UID, volume.ResourceVersion = claim.Spec.VolumeName, uuid.NewUUID(), ""
	volume.Spec.ClaimRef.Name, volume.Spec.ClaimRef.UID = claim.Name, claim.UID
	volume.Spec.CSI.VolumeHandle = handleOf(claim)
	return pair{claim: claim, volume: volume}
}

// stored returns what the API server stores of an object.
func stored(folder string, object runtime.Object) (sandbox.Stored, error) {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return sandbox.Stored{}, fmt.Errorf("encode object: %w", err)
	}
	codec := scheme.Codecs.EncoderForVersion(protobuf.NewSerializer(scheme.Scheme, scheme.Scheme), v1.SchemeGroupVersion)
	value, err := runtime.Encode(codec, object)
	if err != nil {
		return sandbox.Stored{}, fmt.Errorf("encode %s: %w", accessor.GetName(), err)
	}
	return sandbox.Stored{Key: "/registry/" + folder + "/" + accessor.GetName(), Value: value}, nil
}

// createNamespace creates a namespace unless it exists.
func createNamespace(ctx context.Context, client kubernetes.Interface, name string) error {
	_, err := client.CoreV1().Namespaces().Create(ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}},
		metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create namespace: %w", err)
	}
	return nil
}

// createPair creates a claim that is bound to a volume, which has the finalizer of its
// provisioner if it is honored. It returns the name of the volume.
func createPair(ctx context.Context, client kubernetes.Interface, namespace, name, driver string,
	honored bool) (string, error) {
	claims, volumes := client.CoreV1().PersistentVolumeClaims(namespace), client.CoreV1().PersistentVolumes()
	claim := newClaim(namespace, name)
	claim.Annotations = map[string]string{
		storage.AnnStorageProvisioner: driver, storage.AnnBetaStorageProvisioner: driver,
		storage.AnnBindCompleted: "yes", storage.AnnBoundByController: "yes",
	}
	claim.Spec.VolumeName = namespace + "-" + name
	claim, err := claims.Create(ctx, claim, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("create claim: %w", err)
	}
	volume := newVolume(claim)
	volume.Name, volume.Spec.CSI.Driver = claim.Spec.VolumeName, driver
	volume.Annotations[storage.AnnDynamicallyProvisioned] = driver
	if !honored {
		volume.Finalizers = finalizer.Without(volume.Finalizers, finalizer.External)
	}
	if volume, err = volumes.Create(ctx, volume, metav1.CreateOptions{}); err != nil {
		return "", fmt.Errorf("create volume: %w", err)
	}
	if _, err = volumes.Patch(ctx, volume.Name, types.MergePatchType, []byte(volumeIsBound), metav1.PatchOptions{},
		"status"); err != nil {
		return "", fmt.Errorf("write phase of volume: %w", err)
	}
	if _, err = claims.Patch(ctx, claim.Name, types.MergePatchType, []byte(claimIsBound), metav1.PatchOptions{},
		"status"); err != nil {
		return "", fmt.Errorf("write phase of claim: %w", err)
	}
	return volume.Name, nil
}

// wipe removes what is left of the turn once no program runs any more.
func (s *session) wipe(ctx context.Context) error {
	claims, volumes := s.view.left()
	core := s.client.CoreV1()
	force := []byte(`{"metadata":{"finalizers":null}}`)
	err := inParallel(ctx, len(claims)+len(volumes), func(ctx context.Context, i int) error {
		var err error
		if i < len(claims) {
			_, err = core.PersistentVolumeClaims(s.namespace).Patch(ctx, claims[i], types.MergePatchType, force,
				metav1.PatchOptions{})
			err = orGone(err, core.PersistentVolumeClaims(s.namespace).Delete(ctx, claims[i], metav1.DeleteOptions{}))
			return err
		}
		name := volumes[i-len(claims)]
		_, err = core.PersistentVolumes().Patch(ctx, name, types.MergePatchType, force, metav1.PatchOptions{})
		return orGone(err, core.PersistentVolumes().Delete(ctx, name, metav1.DeleteOptions{}))
	})
	if err != nil {
		return err
	}
	if err := core.Pods(s.namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		return fmt.Errorf("remove pods: %w", err)
	}
	return s.view.awaitGone(ctx)
}

// orGone returns the first error that does not mean that the object is gone.
func orGone(errs ...error) error {
	for _, err := range errs {
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("remove what is left: %w", err)
		}
	}
	return nil
}
