package e2e

import (
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/internal/sandbox"
	"github.com/exeunt-io/exeunt/pkg/provision"
)

func TestMissingDeletionSecretDelaysOnlyWhileItCanReturn(t *testing.T) {
	t.Parallel()
	s := enter(t, private(t, setup{honor: true, bare: true}))
	retries := []string{"--retry-interval-start=100ms", "--retry-interval-max=1s"}
	first := s.startSidecar(s.driver, "provisioner-0", nil, append(retries, "--kubeconfig="+s.accountWithoutNamespaces())...)

	alive, terminating, gone := s.newSecretNamespace("alive"), s.newSecretNamespace("terminating"), s.newSecretNamespace("gone")
	returns, stays, lost := s.boundWithSecret("returns", alive), s.boundWithSecret("stays", terminating), s.boundWithSecret("lost", gone)
	s.deleteSecret(alive)
	s.deleteNamespace(terminating)
	s.deleteSecret(terminating) // as the namespace controller does, which is not here
	s.deleteNamespace(gone)
	s.deleteSecret(gone)
	s.finalizeNamespace(gone)
	volumes := []*v1.PersistentVolume{returns, stays, lost}
	for _, volume := range volumes {
		s.deleteClaim(volume.Spec.ClaimRef.Name)
	}
	for _, volume := range volumes {
		if message := s.awaitEvent(volume, "VolumeFailedDelete"); !strings.Contains(message, "/credentials of the volume does not exist") || !strings.Contains(message, "may get namespaces") {
			t.Errorf("the event names neither secret nor right: %s", message)
		}
		if calls := s.calls("DeleteVolume", handle(volume)); calls != 0 {
			t.Errorf("DeleteVolume of %s was called %d times without its secret", volume.Name, calls)
		}
	}

	s.stopSidecar(first)
	s.letSecretsBeRead() // and namespaces
	s.startSidecar(s.driver, "provisioner-1", nil, retries...)
	s.awaitVolumeGone(stays.Name)
	s.expectReclaimed(stays)
	s.awaitVolumeGone(lost.Name)
	s.expectReclaimed(lost)
	if calls := s.calls("DeleteVolume", handle(returns)); calls != 0 {
		t.Errorf("DeleteVolume was called %d times without a secret that can return", calls)
	}
	s.createSecret(alive)
	s.awaitVolumeGone(returns.Name)
	s.expectReclaimed(returns)
}

// accountWithoutNamespaces returns the kubeconfig of a provisioner that has the rights of
// upstream's manifest where volumes need secrets, and upstream's own Role, which grants
// Leases: it may not read namespaces.
func (s *scene) accountWithoutNamespaces() string {
	s.t.Helper()
	account := sandbox.ServiceAccount(s.namespace, "upstream")
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "secrets-alone"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "list"}}},
	}
	_, err := s.client.RbacV1().ClusterRoles().Create(s.ctx, role, metav1.CreateOptions{})
	s.must(err, "create role")
	for _, name := range []string{role.Name, "exeunt:provisioner"} {
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "upstream-"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: account.Name()}},
		}
		_, err = s.client.RbacV1().ClusterRoleBindings().Create(s.ctx, binding, metav1.CreateOptions{})
		s.must(err, "bind role "+name)
	}
	s.must(s.grantUpstream(s.ctx), "create upstream's role")
	_, err = s.client.RbacV1().RoleBindings(deploy.Namespace).Create(s.ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "upstream-"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "external-provisioner-cfg"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: account.Name()}},
	}, metav1.CreateOptions{})
	s.must(err, "bind upstream's role")
	kubeconfig, err := s.plane.Kubeconfig(s.ctx, account)
	s.must(err, "write kubeconfig")
	return kubeconfig
}

// newSecretNamespace creates a namespace with a secret in it.
func (s *scene) newSecretNamespace(name string) string {
	s.t.Helper()
	namespace, err := s.client.CoreV1().Namespaces().Create(s.ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace + "-" + name}}, metav1.CreateOptions{})
	s.must(err, "create namespace")
	s.createSecret(namespace.Name)
	return namespace.Name
}

func (s *scene) createSecret(namespace string) {
	s.t.Helper()
	secret := &v1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "credentials"}, StringData: map[string]string{"user": "root"}}
	_, err := s.client.CoreV1().Secrets(namespace).Create(s.ctx, secret, metav1.CreateOptions{})
	s.must(err, "create secret")
}

func (s *scene) deleteSecret(namespace string) {
	s.t.Helper()
	s.must(s.client.CoreV1().Secrets(namespace).Delete(s.ctx, "credentials", metav1.DeleteOptions{}), "delete secret")
}

func (s *scene) deleteNamespace(name string) {
	s.t.Helper()
	s.must(s.client.CoreV1().Namespaces().Delete(s.ctx, name, metav1.DeleteOptions{}), "delete namespace")
}

// finalizeNamespace ends a namespace that is being deleted, as the namespace controller
// does.
func (s *scene) finalizeNamespace(name string) {
	s.t.Helper()
	namespace, err := s.client.CoreV1().Namespaces().Get(s.ctx, name, metav1.GetOptions{})
	s.must(err, "read namespace")
	namespace.Spec.Finalizers = nil
	_, err = s.client.CoreV1().Namespaces().Finalize(s.ctx, namespace, metav1.UpdateOptions{})
	s.must(err, "finalize namespace")
}

// boundWithSecret returns a bound volume whose deletion needs the secret of the namespace.
func (s *scene) boundWithSecret(claim, namespace string) *v1.PersistentVolume {
	s.t.Helper()
	s.createClaim(claim, deleteClass)
	volume := s.awaitBound(claim)
	body := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"credentials",%q:%q}}}`, provision.DeletionSecretName, provision.DeletionSecretNamespace, namespace)
	volume, err := s.client.CoreV1().PersistentVolumes().Patch(s.ctx, volume.Name, types.MergePatchType, body, metav1.PatchOptions{})
	s.must(err, "annotate volume")
	return volume
}
