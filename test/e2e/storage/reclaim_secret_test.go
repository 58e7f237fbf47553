package storage

import (
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/pkg/provision"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// Only a read of the namespace proves that a secret cannot be created again. Without the right to read, volumes wait.
func TestMissingDeletionSecretDelaysOnlyWhileNamespaceExists(t *testing.T) {
	t.Parallel()
	s := harness.Own(t, harness.Setup{NoProvisioner: true})
	retries := []string{"--retry-interval-start=100ms", "--retry-interval-max=1s"}
	first := s.StartProvisioner(s.Driver, "provisioner-0", nil,
		append(retries, "--kubeconfig="+accountWithoutNamespaces(s))...)

	alive, terminating, gone := s.NewSecretNamespace("alive"), s.NewSecretNamespace("terminating"),
		s.NewSecretNamespace("gone")
	returns, stays, lost := boundWithSecret(s, "returns", alive), boundWithSecret(s, "stays", terminating),
		boundWithSecret(s, "lost", gone)
	s.DeleteSecret(alive)
	s.DeleteNamespace(terminating)
	s.DeleteSecret(terminating) // as the namespace controller does, which does not run here
	s.DeleteNamespace(gone)
	s.DeleteSecret(gone)
	s.FinalizeNamespace(gone)
	volumes := []*v1.PersistentVolume{returns, stays, lost}
	for _, volume := range volumes {
		s.DeleteClaim(volume.Spec.ClaimRef.Name)
	}
	for _, volume := range volumes {
		if message := s.AwaitEvent(volume, "VolumeFailedDelete"); !strings.Contains(message,
			"/credentials of the volume does not exist") || !strings.Contains(message, "may get namespaces") {
			t.Errorf("the event does not name the secret and the missing right: %s", message)
		}
	}

	s.StopProvisioner(first)
	s.GrantSecrets() // includes reading namespaces
	s.StartProvisioner(s.Driver, "provisioner-1", nil, retries...)
	s.AwaitVolumeGone(stays.Name)
	s.ExpectReclaimed(stays)
	s.AwaitVolumeGone(lost.Name)
	s.ExpectReclaimed(lost)
	if calls := s.CountCalls("DeleteVolume", harness.Handle(returns)); calls != 0 {
		t.Errorf("DeleteVolume was called %d times while the secret can return", calls)
	}
	s.CreateSecret(alive)
	s.AwaitVolumeGone(returns.Name)
	s.ExpectReclaimed(returns)
}

// accountWithoutNamespaces returns the kubeconfig of an account with the rights that
// upstream's manifest grants for secrets and leases. It cannot read namespaces.
func accountWithoutNamespaces(s *harness.Session) string {
	s.T.Helper()
	account := sandbox.ServiceAccount(s.Namespace, "upstream")
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "secrets-alone"},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"},
			Verbs: []string{"get", "list"}}},
	}
	_, err := s.Client.RbacV1().ClusterRoles().Create(s.Ctx, role, metav1.CreateOptions{})
	s.Must(err, "create role")
	for _, name := range []string{role.Name, "exeunt:provisioner"} {
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "upstream-"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: account.Name()}},
		}
		_, err = s.Client.RbacV1().ClusterRoleBindings().Create(s.Ctx, binding, metav1.CreateOptions{})
		s.Must(err, "bind role "+name)
	}
	s.Must(s.GrantUpstream(s.Ctx), "create upstream's role")
	_, err = s.Client.RbacV1().RoleBindings(deploy.Namespace).Create(s.Ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "upstream-"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "external-provisioner-cfg"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: account.Name()}},
	}, metav1.CreateOptions{})
	s.Must(err, "bind upstream's role")
	kubeconfig, err := s.Plane.Kubeconfig(s.Ctx, account)
	s.Must(err, "write kubeconfig")
	return kubeconfig
}

// boundWithSecret returns a bound volume whose deletion needs the secret in the namespace.
func boundWithSecret(s *harness.Session, claim, namespace string) *v1.PersistentVolume {
	s.T.Helper()
	s.CreateClaim(claim, harness.DeleteClass)
	volume := s.AwaitBound(claim)
	body := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"credentials",%q:%q}}}`, provision.DeletionSecretName,
		provision.DeletionSecretNamespace, namespace)
	volume, err := s.Client.CoreV1().PersistentVolumes().Patch(s.Ctx, volume.Name, types.MergePatchType, body,
		metav1.PatchOptions{})
	s.Must(err, "annotate volume")
	return volume
}
