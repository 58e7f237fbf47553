package load

import (
	"context"

	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	rbacclient "k8s.io/client-go/kubernetes/typed/rbac/v1"
)

// quietKinds returns functions that create an object of each of several kinds.
func quietKinds(core corev1.CoreV1Interface, rights rbacclient.RbacV1Interface, identity metav1.ObjectMeta) []func(context.Context) error {
	return []func(context.Context) error{
		func(ctx context.Context) error {
			_, err := core.Secrets(identity.Namespace).Create(ctx, &v1.Secret{ObjectMeta: identity}, metav1.CreateOptions{})
			return err
		},
		func(ctx context.Context) error {
			_, err := core.ServiceAccounts(identity.Namespace).Create(ctx, &v1.ServiceAccount{ObjectMeta: identity}, metav1.CreateOptions{})
			return err
		},
		func(ctx context.Context) error {
			_, err := core.LimitRanges(identity.Namespace).Create(ctx, &v1.LimitRange{ObjectMeta: identity}, metav1.CreateOptions{})
			return err
		},
		func(ctx context.Context) error {
			_, err := rights.Roles(identity.Namespace).Create(ctx, &rbacv1.Role{ObjectMeta: identity}, metav1.CreateOptions{})
			return err
		},
		func(ctx context.Context) error {
			binding := &rbacv1.RoleBinding{ObjectMeta: identity, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: identity.Name}}
			_, err := rights.RoleBindings(identity.Namespace).Create(ctx, binding, metav1.CreateOptions{})
			return err
		},
	}
}
