package load

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
)

// zone is the label by which claims select volumes.
const zone = "zone"

// static binds claims to volumes that name each other.
func static(ctx context.Context, s *session) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	size := s.turn.Scenario.Size
	err := s.createVolumes(ctx, size, func(i int, volume *v1.PersistentVolume) {
		volume.Spec.ClaimRef = &v1.ObjectReference{Namespace: s.namespace, Name: claimName(i)}
	})
	if err != nil {
		return err
	}
	_, err = s.measure(ctx, Bind, size, func(ctx context.Context) error {
		return s.bindStatic(ctx, size, func(i int,
			claim *v1.PersistentVolumeClaim) {
			claim.Spec.VolumeName = s.staticName(i)
		})
	})
	return err
}

// selectors binds claims of different sizes, which select volumes by a label, to some of many
// free volumes.
func selectors(ctx context.Context, s *session) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	const zones, smallest, sizes = 4, 1, 50
	err := s.createVolumes(ctx, s.turn.Scenario.Others, func(i int, volume *v1.PersistentVolume) {
		volume.Labels = map[string]string{zone: fmt.Sprint(i % zones)}
		volume.Spec.Capacity = gigabytes(smallest + i*7%sizes)
	})
	if err != nil {
		return err
	}
	size := s.turn.Scenario.Size
	_, err = s.measure(ctx, Bind, size, func(ctx context.Context) error {
		return s.bindStatic(ctx, size, func(i int, claim *v1.PersistentVolumeClaim) {
			claim.Spec.Resources.Requests = gigabytes(smallest + i*3%(sizes/2))
			claim.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{zone: fmt.Sprint(i % zones)}}
		})
	})
	return err
}

// staticName returns the name of a volume that a user creates.
func (s *session) staticName(i int) string { return fmt.Sprintf("%s-%d", s.namespace, i) }

// createVolumes creates volumes of no class, and waits until nobody writes about them.
func (s *session) createVolumes(ctx context.Context, size int, change func(i int, volume *v1.PersistentVolume)) error {
	err := inParallel(ctx, size, func(ctx context.Context, i int) error {
		volume := newVolume(newClaim(s.namespace, claimName(i)))
		volume.ObjectMeta = metav1.ObjectMeta{Name: s.staticName(i)}
		volume.Spec.StorageClassName, volume.Spec.ClaimRef = "", nil
		volume.Spec.PersistentVolumeReclaimPolicy = v1.PersistentVolumeReclaimRetain
		volume.Spec.CSI.VolumeHandle = "disk-" + volume.Name
		change(i, volume)
		if _, err := s.client.CoreV1().PersistentVolumes().Create(ctx, volume, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create volume: %w", err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	_, err = s.awaitQuiet(ctx)
	return err
}

// bindStatic creates claims of no class and waits until they are bound.
func (s *session) bindStatic(ctx context.Context, size int, change func(i int, claim *v1.PersistentVolumeClaim)) error {
	err := s.forEach(ctx, size, func(ctx context.Context, i int) error {
		claim := newClaim(s.namespace, claimName(i))
		claim.Spec.StorageClassName = ptr.To("")
		change(i, claim)
		claim, err := s.client.CoreV1().PersistentVolumeClaims(s.namespace).Create(ctx, claim, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("create claim: %w", err)
		}
		if s.ceiling == nil {
			return nil
		}
		return s.ceiling.bindStatic(ctx, claim)
	})
	if err != nil {
		return err
	}
	return s.view.awaitBound(ctx, size)
}

// gate starts the programs after volumes were bound without the finalizer of their
// provisioner, as with the gate HonorPVReclaimPolicy off, and waits until all have it.
func gate(ctx context.Context, s *session) error {
	size, volumes := s.turn.Scenario.Size, make([]string, s.turn.Scenario.Size)
	err := inParallel(ctx, size, func(ctx context.Context, i int) (err error) {
		volumes[i], err = createPair(ctx, s.client, s.namespace, claimName(i), driverName, false)
		return err
	})
	if err != nil {
		return err
	}
	_, err = s.measure(ctx, "honor", size, func(ctx context.Context) error {
		if err := s.programs.Start(ctx); err != nil {
			return err
		}
		if s.ceiling != nil {
			body := fmt.Sprintf(`{"metadata":{"finalizers":[%q,%q]}}`, finalizer.VolumeProtection, finalizer.External)
			err := s.forEach(ctx, size, func(ctx context.Context, i int) error {
				return s.ceiling.patchVolume(ctx, s.ceiling.sidecar, volumes[i], body)
			})
			if err != nil {
				return err
			}
		}
		return s.view.await(ctx, "all volumes have the finalizer", func(v *view) bool { return v.honored >= size })
	})
	return err
}
