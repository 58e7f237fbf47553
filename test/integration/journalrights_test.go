package integration

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

	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// stranger returns a user without the right to Leases.
func stranger(s *harness.Session) (sandbox.Identity, kubernetes.Interface) {
	s.T.Helper()
	identity := sandbox.User("stranger-" + s.Namespace)
	file, err := s.Plane.Kubeconfig(s.Ctx, identity)
	s.Must(err, "write kubeconfig")
	config, err := sandbox.LoadConfig(file)
	s.Must(err, "load kubeconfig")
	client, err := kubernetes.NewForConfig(config)
	s.Must(err, "make client")
	return identity, client
}

// grantLeases grants the verbs on Leases in the test's namespace.
func grantLeases(s *harness.Session, identity sandbox.Identity, verbs ...string) {
	s.T.Helper()
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "leases"},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"},
			Verbs: verbs}},
	}
	_, err := s.Client.RbacV1().Roles(s.Namespace).Create(s.Ctx, role, metav1.CreateOptions{})
	s.Must(err, "create role")
	_, err = s.Client.RbacV1().RoleBindings(s.Namespace).Create(s.Ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: identity.Name()}},
	}, metav1.CreateOptions{})
	s.Must(err, "bind role")
}

func TestMissingRightToLeasesDelaysButServes(t *testing.T) {
	harness.Parallel(t, harness.Setup{})
	for name, verbs := range map[string][]string{
		"no rights": nil, "read only": {"get", "list", "watch"}, "read and create only": {"get", "list", "watch", "create"},
	} {
		t.Run(name, func(t *testing.T) {
			const denied = 500 * time.Millisecond
			s := harness.Join(t, harness.Setup{})
			identity, client := stranger(s)
			if verbs != nil {
				grantLeases(s, identity, verbs...)
			}
			began := time.Now()
			m := newFixture(s, storagev1.VolumeBindingImmediate, func(m *fixture) { m.leases, m.deniedFor = client, denied })
			if waited := time.Since(began); waited < denied {
				t.Errorf("the controller waited only %s for the rights", waited)
			}
			if message := m.event("JournalForbidden"); !strings.Contains(message, m.storage.name) ||
				!strings.Contains(message, m.Namespace) {
				t.Errorf("the event names neither driver nor namespace: %s", message)
			}
			claim := m.refresh(m.createRequested())
			m.converge(claim)
			m.AwaitBound(claim.Name)
			m.expectRecorded(claim)
			m.expect("volumes without an entry", fmt.Sprint(m.bypassed), "[Forbidden]")
			// A teardown takes the Lease that the right to create has left for a journal of this term.
			_ = m.event("ProvisioningWithoutJournal")
		})
	}
}

func TestLaterRightToLeasesIsUsed(t *testing.T) {
	s := harness.Join(t, harness.Setup{})
	identity, client := stranger(s)
	go func() {
		for event, err := range sandbox.FollowAudit(s.Ctx, s.Plane.AuditLog) {
			if err == nil && event.User == identity.Name() && event.Resource == "selfsubjectaccessreviews" {
				grantLeases(s, identity, "get", "list", "watch", "create", "update", "delete")
				return
			}
		}
	}()
	m := newFixture(s, storagev1.VolumeBindingImmediate, func(m *fixture) { m.leases = client })
	claim := m.openFor()
	m.expectJournal(1, 1)
	m.converge(claim)
	m.expectRecorded(claim)
	m.expectJournal(0, 1)
	m.expect("volumes without an entry", len(m.bypassed), 0)
}

// When the right is removed from a running provisioner, no volume is created without an
// entry: the claim waits.
func TestRemovedRightToLeasesDelaysTheCall(t *testing.T) {
	s := harness.Join(t, harness.Setup{})
	identity, client := stranger(s)
	grantLeases(s, identity, "get", "list", "watch", "create", "update", "delete")
	m := newFixture(s, storagev1.VolumeBindingImmediate, func(m *fixture) { m.leases = client })
	claim := m.refresh(m.createRequested())
	m.Must(m.Client.RbacV1().RoleBindings(m.Namespace).Delete(m.Ctx, "leases", metav1.DeleteOptions{}),
		"delete role binding")
	m.Until("the right is removed", func() bool {
		_, err := client.CoordinationV1().Leases(m.Namespace).List(m.Ctx, metav1.ListOptions{})
		return apierrors.IsForbidden(err)
	})
	_ = m.fails(claim)
	if message := m.event("ProvisioningFailed"); !strings.Contains(message, "journal") ||
		!strings.Contains(message, "forbidden") {
		t.Errorf("the event does not name the missing right: %s", message)
	}
	m.expect("CreateVolume calls", len(m.storage.requested), 0)
}
