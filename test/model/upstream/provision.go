package upstream

import (
	"context"
	"fmt"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/test/model/process"
)

// reconcileClaim provisions for the claim with the UID. A claim that is gone from the cache
// is served from memory while its CreateVolume may still have an effect. A pass without
// error ends that memory.
func (s *sidecar) reconcileClaim(ctx context.Context, uid string) error {
	claim := s.cachedClaim(uid)
	if claim != nil {
		defer s.claimLoop.EnqueueAfter(uid, sidecarResync)
	} else if claim = s.claimInProgress(uid); claim == nil {
		return nil
	}
	wanted, err := s.shouldProvision(claim)
	if err == nil && wanted {
		err = s.provision(ctx, claim)
	}
	if err == nil {
		s.setInProgress(uid, nil)
	}
	return err
}

func (s *sidecar) cachedClaim(uid string) *v1.PersistentVolumeClaim {
	for _, claim := range list[*v1.PersistentVolumeClaim](s.claimInformer) {
		if string(claim.UID) == uid {
			return claim
		}
	}
	return nil
}

func (s *sidecar) claimInProgress(uid string) *v1.PersistentVolumeClaim {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inProgress[uid]
}

// setInProgress remembers the claim, or forgets it if claim is nil.
func (s *sidecar) setInProgress(uid string, claim *v1.PersistentVolumeClaim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if claim == nil {
		delete(s.inProgress, uid)
		return
	}
	s.inProgress[uid] = claim
}

func (s *sidecar) classOf(claim *v1.PersistentVolumeClaim) (*storagev1.StorageClass, error) {
	if class := controller.Lookup[*storagev1.StorageClass](s.classInformer, storage.ClaimClass(claim)); class != nil {
		return class, nil
	}
	return nil, fmt.Errorf("class %q of claim %s is not cached", storage.ClaimClass(claim), claim.Name)
}

func (s *sidecar) shouldProvision(claim *v1.PersistentVolumeClaim) (bool, error) {
	if claim.Spec.VolumeName != "" || storage.ClaimProvisioner(claim) != process.DriverName {
		return false, nil
	}
	class, err := s.classOf(claim)
	if err != nil {
		return false, err
	}
	return !storage.WaitsForFirstConsumer(class) || claim.Annotations[storage.AnnSelectedNode] != "", nil
}

// provision creates the volume unless the cache has it: a cache that is behind, or that has
// already lost the volume, leads to a further CreateVolume.
func (s *sidecar) provision(ctx context.Context, claim *v1.PersistentVolumeClaim) error {
	name := "pvc-" + string(claim.UID)
	class, err := s.classOf(claim)
	switch {
	case s.volumes.get(name) != nil:
		return nil
	case err != nil:
		s.setInProgress(string(claim.UID), nil)
		return err
	case class.Provisioner != process.DriverName:
		return nil
	}
	response, err := s.driver.CreateVolume(ctx, requestFor(name, claim, class))
	if err != nil && mayHaveEffect(err) {
		s.setInProgress(string(claim.UID), claim)
	} else if err != nil {
		s.setInProgress(string(claim.UID), nil)
	}
	if err != nil {
		return fmt.Errorf("create volume for claim %s: %w", claim.Name, err)
	}
	s.create(ctx, s.volumeFor(name, claim, class, response.GetVolume()))
	return nil
}

// mayHaveEffect reports whether the driver may still create the volume after the error.
func mayHaveEffect(err error) bool {
	answer, fromDriver := status.FromError(err)
	if !fromDriver {
		return true
	}
	switch answer.Code() {
	case codes.Canceled, codes.DeadlineExceeded, codes.Unavailable, codes.Aborted:
		return true
	default:
		return false
	}
}

func requestFor(name string, claim *v1.PersistentVolumeClaim, class *storagev1.StorageClass) *spec.CreateVolumeRequest {
	return &spec.CreateVolumeRequest{
		Name:          name,
		Parameters:    class.Parameters,
		CapacityRange: &spec.CapacityRange{RequiredBytes: sizeOf(claim).Value()},
		VolumeCapabilities: []*spec.VolumeCapability{{
			AccessMode: &spec.VolumeCapability_AccessMode{Mode: spec.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
			AccessType: &spec.VolumeCapability_Mount{Mount: &spec.VolumeCapability_MountVolume{}},
		}},
	}
}

// volumeFor returns the PersistentVolume of a disk. It has the finalizer for every policy:
// the volume loop removes the finalizer from volumes that are retained.
func (s *sidecar) volumeFor(
	name string, claim *v1.PersistentVolumeClaim, class *storagev1.StorageClass, disk *spec.Volume,
) *v1.PersistentVolume {
	capacity := *resource.NewQuantity(disk.GetCapacityBytes(), resource.BinarySI)
	if capacity.IsZero() {
		capacity = *sizeOf(claim)
	}
	volume := &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{
			storage.AnnDynamicallyProvisioned: class.Provisioner,
			deletionSecretName:                "", deletionSecretNamespace: "",
		}},
		Spec: v1.PersistentVolumeSpec{
			AccessModes:                   claim.Spec.AccessModes,
			Capacity:                      v1.ResourceList{v1.ResourceStorage: capacity},
			PersistentVolumeReclaimPolicy: ptr.Deref(class.ReclaimPolicy, v1.PersistentVolumeReclaimDelete),
			PersistentVolumeSource: v1.PersistentVolumeSource{
				CSI: &v1.CSIPersistentVolumeSource{Driver: process.DriverName, VolumeHandle: disk.GetVolumeId()},
			},
			StorageClassName: storage.ClaimClass(claim),
			VolumeMode:       claim.Spec.VolumeMode,
			ClaimRef:         referenceTo(claim),
		},
	}
	if s.honor {
		volume.Finalizers = []string{string(finalizer.External)}
	}
	return volume
}

// create writes the PersistentVolume, or remembers it for the loop unsavedpvs. A volume of
// the same name counts as this volume, whatever its handle.
func (s *sidecar) create(ctx context.Context, volume *v1.PersistentVolume) {
	if s.tryCreate(ctx, volume) == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unsaved[volume.Name] = volume
	s.saveLoop.Enqueue(volume.Name)
}

func (s *sidecar) tryCreate(ctx context.Context, volume *v1.PersistentVolume) error {
	_, err := s.client.CoreV1().PersistentVolumes().Create(ctx, volume, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create PersistentVolume %s: %w", volume.Name, err)
	}
	return nil
}

// save creates the PersistentVolume again until the API server takes it.
func (s *sidecar) save(ctx context.Context, name string) error {
	s.mu.Lock()
	volume := s.unsaved[name]
	s.mu.Unlock()
	if volume == nil {
		return nil
	}
	if err := s.tryCreate(ctx, volume); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.unsaved, name)
	return nil
}
