package stories

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/exeunt-io/exeunt/pkg/csimock"
	"github.com/exeunt-io/exeunt/test/demo"
)

const (
	// className is the class of most volumes, retainClass that of volumes that are kept.
	className   = demo.ClassName
	retainClass = demo.ClassName + "-retain"
	// poll is the period in which a condition is read.
	poll = 100 * time.Millisecond
	// atOnce is the number of requests at the same time.
	atOnce = 16
)

// session is what an administrator does in one story of one pair.
type session struct {
	cluster *demo.Cluster
	client  kubernetes.Interface
	pair    demo.Pair
	// namespace of the claims.
	namespace string
	// volumes is the number of volumes in stories with many.
	volumes int
	// say prints a step.
	say func(what string)
}

// await waits until holds returns true.
func (s *session) await(ctx context.Context, what string, holds func(context.Context) (bool, error)) error {
	err := wait.PollUntilContextCancel(ctx, poll, true, holds)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("wait until %s: %w", what, err)
	}
	return nil
}

// createClass creates a class with reclaim policy Retain, unless it exists.
func (s *session) createClass(ctx context.Context, name string) error {
	s.say("kubectl apply -f class.yaml  # StorageClass " + name + ", reclaimPolicy: Retain")
	policy := v1.PersistentVolumeReclaimRetain
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: csimock.DefaultName,
		ReclaimPolicy: &policy}
	_, err := s.client.StorageV1().StorageClasses().Create(ctx, class, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create storage class: %w", err)
	}
	return nil
}

// createClaims creates claims of a class.
func (s *session) createClaims(ctx context.Context, class string, count int) error {
	s.say(fmt.Sprintf("kubectl create -f claims.yaml  # %d of StorageClass %s", count, class))
	return s.each(count, func(i int) error { return s.create(ctx, class, fmt.Sprintf("claim-%d", i)) })
}

// createClaim creates a claim.
func (s *session) createClaim(ctx context.Context, class, name string) error {
	s.say("kubectl create -f " + name + ".yaml  # another PVC")
	return s.create(ctx, class, name)
}

// create creates a claim without printing a step.
func (s *session) create(ctx context.Context, class, name string) error {
	claim := &v1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name},
		Spec: v1.PersistentVolumeClaimSpec{
			StorageClassName: &class,
			AccessModes:      []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce},
			Resources:        v1.VolumeResourceRequirements{Requests: v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Mi")}},
		},
	}
	if _, err := s.client.CoreV1().PersistentVolumeClaims(s.namespace).
		Create(ctx, claim, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create claim: %w", err)
	}
	return nil
}

// deleteClaims deletes all claims.
func (s *session) deleteClaims(ctx context.Context) error {
	s.say("kubectl delete pvc --all -n " + s.namespace + " --wait=false")
	claims, err := s.client.CoreV1().PersistentVolumeClaims(s.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list claims: %w", err)
	}
	return s.each(len(claims.Items), func(i int) error {
		err := s.client.CoreV1().PersistentVolumeClaims(s.namespace).Delete(ctx, claims.Items[i].Name, metav1.DeleteOptions{})
		return ignoreGone(err, "delete claim")
	})
}

// deleteVolumes deletes all volumes.
func (s *session) deleteVolumes(ctx context.Context) error {
	s.say("kubectl delete pv --all --wait=false")
	volumes, err := s.client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list volumes: %w", err)
	}
	return s.each(len(volumes.Items), func(i int) error {
		err := s.client.CoreV1().PersistentVolumes().Delete(ctx, volumes.Items[i].Name, metav1.DeleteOptions{})
		return ignoreGone(err, "delete volume")
	})
}

// setPolicyAndDelete sets the reclaim policy of each volume to Delete, and deletes the volume.
func (s *session) setPolicyAndDelete(ctx context.Context) error {
	const patch = `{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}`
	volumes, err := s.client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list volumes: %w", err)
	}
	s.say("kubectl patch pv $PV -p '" + patch + "' && kubectl delete pv $PV --wait=false  # each PV")
	return s.each(len(volumes.Items), func(i int) error {
		name, client := volumes.Items[i].Name, s.client.CoreV1().PersistentVolumes()
		if _, err := client.Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("set reclaim policy: %w", err)
		}
		return ignoreGone(client.Delete(ctx, name, metav1.DeleteOptions{}), "delete volume")
	})
}

// awaitBound waits until so many claims are bound.
func (s *session) awaitBound(ctx context.Context, count int) error {
	return s.await(ctx, fmt.Sprintf("%d claims are bound", count), func(ctx context.Context) (bool, error) {
		claims, err := s.client.CoreV1().PersistentVolumeClaims(s.namespace).
			List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return false, err
		}
		bound := 0
		for _, claim := range claims.Items {
			if claim.Status.Phase == v1.ClaimBound {
				bound++
			}
		}
		return bound == count, nil
	})
}

// awaitNoClaim waits until no claim is left.
func (s *session) awaitNoClaim(ctx context.Context) error {
	return s.await(ctx, "no claim is left", func(ctx context.Context) (bool, error) {
		claims, err := s.client.CoreV1().PersistentVolumeClaims(s.namespace).List(ctx, metav1.ListOptions{})
		return err == nil && len(claims.Items) == 0, err
	})
}

// awaitNothing waits until neither claims nor volumes are left in the API.
func (s *session) awaitNothing(ctx context.Context) error {
	if err := s.awaitNoClaim(ctx); err != nil {
		return err
	}
	return s.await(ctx, "no PersistentVolume is left", func(ctx context.Context) (bool, error) {
		volumes, err := s.client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
		return err == nil && len(volumes.Items) == 0, err
	})
}

// hasStored reports whether the storage system has so many volumes. The driver may answer
// that the deadline has passed shortly before ctx ends.
func (s *session) hasStored(ctx context.Context, count int) (bool, error) {
	handles, err := s.cluster.StoredVolumes(ctx)
	if status.Code(err) == codes.DeadlineExceeded {
		return false, nil
	}
	return err == nil && len(handles) == count, err
}

// each calls do for each number below count, several at the same time.
func (s *session) each(count int, do func(int) error) error {
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i := range count {
		group.Go(func() error { return do(i) })
	}
	return group.Wait()
}

// ignoreGone wraps an error, unless the object is gone.
func ignoreGone(err error, doing string) error {
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// createNamespace creates the namespace of the session.
func (s *session) createNamespace(ctx context.Context) error {
	s.say("kubectl create namespace " + s.namespace)
	namespace := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
	if _, err := s.client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create namespace: %w", err)
	}
	return nil
}

// deleteNamespace starts the deletion of the namespace.
func (s *session) deleteNamespace(ctx context.Context) error {
	s.say("kubectl delete namespace " + s.namespace + "  # which deletes its claims:")
	if err := s.client.CoreV1().Namespaces().Delete(ctx, s.namespace, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("delete namespace: %w", err)
	}
	return nil
}

// finalizeNamespace ends the deletion of the namespace.
func (s *session) finalizeNamespace(ctx context.Context) error {
	namespace, err := s.client.CoreV1().Namespaces().Get(ctx, s.namespace, metav1.GetOptions{})
	if err == nil {
		namespace.Spec.Finalizers = nil
		_, err = s.client.CoreV1().Namespaces().Finalize(ctx, namespace, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("finalize namespace: %w", err)
	}
	return nil
}

// clear removes claims and volumes that an unfinished story left in the API, once no
// controller runs that would act on them.
func (s *session) clear(ctx context.Context) error {
	const patch = `{"metadata":{"finalizers":null}}`
	claims, err := s.client.CoreV1().PersistentVolumeClaims(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list claims: %w", err)
	}
	volumes, err := s.client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list volumes: %w", err)
	}
	return errors.Join(
		s.each(len(claims.Items), func(i int) error {
			claim, client := claims.Items[i], s.client.CoreV1().PersistentVolumeClaims(claims.Items[i].Namespace)
			deleted := client.Delete(ctx, claim.Name, metav1.DeleteOptions{})
			_, patched := client.Patch(ctx, claim.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
			return errors.Join(ignoreGone(deleted, "delete claim"), ignoreGone(patched, "remove finalizers"))
		}),
		s.each(len(volumes.Items), func(i int) error {
			name, client := volumes.Items[i].Name, s.client.CoreV1().PersistentVolumes()
			deleted := client.Delete(ctx, name, metav1.DeleteOptions{})
			_, patched := client.Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
			return errors.Join(ignoreGone(deleted, "delete volume"), ignoreGone(patched, "remove finalizers"))
		}))
}
