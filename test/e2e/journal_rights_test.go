package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/exeunt-io/exeunt/internal/sandbox"
)

// stranger is a user without the right to Leases.
func (s *scene) stranger() (sandbox.Identity, kubernetes.Interface) {
	s.t.Helper()
	identity := sandbox.User("stranger-" + s.namespace)
	file, err := s.plane.Kubeconfig(s.ctx, identity)
	s.must(err, "write kubeconfig")
	config, err := sandbox.LoadConfig(file)
	s.must(err, "load kubeconfig")
	client, err := kubernetes.NewForConfig(config)
	s.must(err, "make client")
	return identity, client
}

// letLeasesBeWritten grants the verbs in the test's namespace.
func (s *scene) letLeasesBeWritten(identity sandbox.Identity, verbs ...string) {
	s.t.Helper()
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "leases"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: verbs}},
	}
	_, err := s.client.RbacV1().Roles(s.namespace).Create(s.ctx, role, metav1.CreateOptions{})
	s.must(err, "create role")
	_, err = s.client.RbacV1().RoleBindings(s.namespace).Create(s.ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: identity.Name()}},
	}, metav1.CreateOptions{})
	s.must(err, "bind role")
}

func TestMissingRightToLeasesDelaysButServes(t *testing.T) {
	t.Parallel()
	for name, verbs := range map[string][]string{
		"no right": nil, "reading only": {"get", "list", "watch"}, "creating only": {"get", "list", "watch", "create"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const denied = 500 * time.Millisecond
			s := enter(t, shared(t, setup{honor: true}))
			identity, client := s.stranger()
			if verbs != nil {
				s.letLeasesBeWritten(identity, verbs...)
			}
			began := time.Now()
			m := s.newMaker(storagev1.VolumeBindingImmediate, func(m *maker) { m.leases, m.deniedFor = client, denied })
			if waited := time.Since(began); waited < denied {
				t.Errorf("the rights were waited for only %s", waited)
			}
			if message := m.event("JournalForbidden"); !strings.Contains(message, m.storage.name) || !strings.Contains(message, m.namespace) {
				t.Errorf("the event names neither driver nor namespace: %s", message)
			}
			claim := m.see(m.requested())
			m.converge(claim)
			m.awaitBound(claim.Name)
			m.expectRecorded(claim)
			m.expect("volumes without an entry", fmt.Sprint(m.bypassed), "[Forbidden]")
		})
	}
}

func TestRightToLeasesThatComesLateIsUsed(t *testing.T) {
	t.Parallel()
	s := enter(t, shared(t, setup{honor: true}))
	identity, client := s.stranger()
	go func() {
		for event, err := range sandbox.FollowAudit(s.ctx, s.plane.AuditLog) {
			if err == nil && event.User == identity.Name() && event.Resource == "selfsubjectaccessreviews" {
				s.letLeasesBeWritten(identity, "get", "list", "watch", "create", "update", "delete")
				return
			}
		}
	}()
	m := s.newMaker(storagev1.VolumeBindingImmediate, func(m *maker) { m.leases = client })
	claim := m.openFor()
	m.expectJournal(1, 1)
	m.converge(claim)
	m.expectRecorded(claim)
	m.expectJournal(0, 1)
	m.expect("volumes without an entry", len(m.bypassed), 0)
}

// A right that goes while the provisioner works is no reason to create volumes without
// entries: the claim waits.
func TestRightToLeasesThatGoesDelaysTheCall(t *testing.T) {
	t.Parallel()
	s := enter(t, shared(t, setup{honor: true}))
	identity, client := s.stranger()
	s.letLeasesBeWritten(identity, "get", "list", "watch", "create", "update", "delete")
	m := s.newMaker(storagev1.VolumeBindingImmediate, func(m *maker) { m.leases = client })
	claim := m.see(m.requested())
	m.must(m.client.RbacV1().RoleBindings(m.namespace).Delete(m.ctx, "leases", metav1.DeleteOptions{}), "delete role binding")
	m.until("the right is gone", func() bool {
		_, err := client.CoordinationV1().Leases(m.namespace).List(m.ctx, metav1.ListOptions{})
		return apierrors.IsForbidden(err)
	})
	_ = m.fails(claim)
	if message := m.event("ProvisioningFailed"); !strings.Contains(message, "journal") || !strings.Contains(message, "forbidden") {
		t.Errorf("the event does not say why the claim waits: %s", message)
	}
	m.expect("CreateVolume calls", len(m.storage.asked), 0)
}
