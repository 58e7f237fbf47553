package demo

import (
	"context"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
)

const (
	namespace = metav1.NamespaceDefault
	// claimName is the claim whose volume is deleted before it.
	claimName = "demo"
	// markerName is the claim that is deleted before its volume.
	markerName = "marker"
)

// scenario is the sequence of steps of the demo, as an administrator.
type scenario struct {
	cluster *Cluster
	objects *objects
	tell    func(Event)
	// volume is the volume of the claim, once the claim is bound.
	volume *v1.PersistentVolume
}

// run deletes a volume before its claim, and returns once both are gone. With the gate
// off it then waits until another volume was reclaimed.
func (s *scenario) run(ctx context.Context, honor bool) error {
	steps := []func(context.Context) error{s.applyClass, s.createClaim, s.showVolume, s.deleteVolume, s.deleteClaim}
	if !honor {
		steps = append(steps, s.reclaimMarker)
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// applyClass creates the storage class.
func (s *scenario) applyClass(ctx context.Context) error {
	s.announce(kindStep, "kubectl apply -f class.yaml  # StorageClass "+ClassName+", reclaimPolicy: Delete")
	return s.cluster.ApplyClass(ctx)
}

// createClaim creates the claim and waits for its volume.
func (s *scenario) createClaim(ctx context.Context) (err error) {
	s.announce(kindStep, "kubectl create -f claim.yaml  # PVC "+claimName)
	s.volume, err = s.bind(ctx, claimName)
	return err
}

// showVolume shows the finalizers of the volume, and when each is removed.
func (s *scenario) showVolume(context.Context) error {
	s.announce(kindStep, "kubectl get pv "+shorten(s.volume.Name)+" -o yaml  # which finalizers keep it?")
	for _, line := range explain(s.volume.Finalizers) {
		s.tell(Event{Kind: kindNote, Time: time.Now(), Who: watched, What: line})
	}
	return nil
}

// explain returns a line for each finalizer of a volume with the time of its removal,
// and a line if none keeps the volume until the driver has deleted it.
func explain(finalizers []string) []string {
	var lines []string
	for _, name := range finalizers {
		line := "kept by " + shortenFinalizer(name)
		if holder, ours := finalizer.HolderOf(name); ours {
			line += " until " + holder.Until
		}
		lines = append(lines, line)
	}
	if !slices.Contains(finalizers, string(finalizer.External)) {
		lines = append(lines, "no finalizer keeps it until the CSI driver has deleted the volume")
	}
	return lines
}

// deleteVolume deletes the volume while its claim exists.
func (s *scenario) deleteVolume(ctx context.Context) error {
	s.announce(kindStep, "kubectl delete pv "+shorten(s.volume.Name)+" --wait=false  # the PV first")
	name := s.volume.Name
	if err := s.cluster.Client().CoreV1().PersistentVolumes().Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("delete volume: %w", err)
	}
	return s.objects.await(ctx, "PV "+name+" is being deleted", func() bool {
		volume := s.objects.volume(name)
		return volume == nil || volume.DeletionTimestamp != nil
	})
}

// deleteClaim deletes the claim and waits until both objects are gone.
func (s *scenario) deleteClaim(ctx context.Context) error {
	s.announce(kindStep, "kubectl delete pvc "+claimName+"  # then its PVC")
	return s.release(ctx, claimName, s.volume.Name)
}

// reclaimMarker creates a second volume and deletes it in the usual order. Once it is
// reclaimed, the queues have processed the first volume, too.
func (s *scenario) reclaimMarker(ctx context.Context) error {
	s.announce(kindCheck, "kubectl create -f "+markerName+".yaml  # to confirm: another PVC, deleted before its PV")
	volume, err := s.bind(ctx, markerName)
	if err != nil {
		return err
	}
	s.announce(kindCheck, "kubectl delete pvc "+markerName)
	return s.release(ctx, markerName, volume.Name)
}

// bind creates a claim and returns its volume once both are bound.
func (s *scenario) bind(ctx context.Context, name string) (*v1.PersistentVolume, error) {
	if _, err := s.cluster.Client().CoreV1().PersistentVolumeClaims(namespace).
		Create(ctx, newClaim(name), metav1.CreateOptions{}); err != nil {
		return nil, fmt.Errorf("create claim: %w", err)
	}
	var volume *v1.PersistentVolume
	err := s.objects.await(ctx, "PVC "+name+" is bound", func() bool {
		claim := s.objects.claim(name)
		if claim == nil || claim.Status.Phase != v1.ClaimBound {
			return false
		}
		volume = s.objects.volume(claim.Spec.VolumeName)
		return volume != nil && volume.Status.Phase == v1.VolumeBound
	})
	return volume, err
}

// release deletes a claim and waits until it and its volume are gone.
func (s *scenario) release(ctx context.Context, claim, volume string) error {
	if err := s.cluster.Client().CoreV1().PersistentVolumeClaims(namespace).
		Delete(ctx, claim, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("delete claim: %w", err)
	}
	return s.objects.await(ctx, "PVC "+claim+" and PV "+volume+" are gone", func() bool {
		return s.objects.claim(claim) == nil && s.objects.volume(volume) == nil
	})
}

// announce adds a step or check to the timeline, as the command to type.
func (s *scenario) announce(kind kind, command string) {
	s.tell(Event{Kind: kind, Time: time.Now(), Who: you, What: "$ " + command})
}

// newClaim returns a claim for 1 GiB.
func newClaim(name string) *v1.PersistentVolumeClaim {
	class := ClassName
	return &v1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1.PersistentVolumeClaimSpec{
			StorageClassName: &class,
			AccessModes:      []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce},
			Resources:        v1.VolumeResourceRequirements{Requests: v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
}
