package stories

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// createNamespace creates the namespace of the stage.
func (s *stage) createNamespace(ctx context.Context) error {
	s.say("kubectl create namespace " + s.namespace)
	namespace := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
	if _, err := s.client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create namespace: %w", err)
	}
	return nil
}

// deleteNamespace starts the deletion of the namespace.
func (s *stage) deleteNamespace(ctx context.Context) error {
	s.say("kubectl delete namespace " + s.namespace + "  # which deletes its claims:")
	if err := s.client.CoreV1().Namespaces().Delete(ctx, s.namespace, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("delete namespace: %w", err)
	}
	return nil
}

// finalizeNamespace ends the deletion of the namespace.
func (s *stage) finalizeNamespace(ctx context.Context) error {
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
func (s *stage) clear(ctx context.Context) error {
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
