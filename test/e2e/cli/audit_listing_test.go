package cli

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// faultFile writes a fault of the mock driver and returns the flags for it.
func faultFile(t *testing.T, fault string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "faults.yaml")
	if err := os.WriteFile(path, []byte("[{"+fault+"}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	return "--volumes=3 --faults=" + path
}

func TestWrongListNamesNoOrphan(t *testing.T) {
	for name, tc := range map[string]struct {
		flags, fault, want string
		enumerated         bool
	}{
		"no capability":   {"--volumes=3 --without=list", "", "no capability LIST_VOLUMES", false},
		"late answer":     {"", "method: ListVolumes, latency: 1h", "did not answer ListVolumes in time", false},
		"hanging driver":  {"", "method: ListVolumes, hang: true", "did not answer ListVolumes in time", false},
		"repeated token":  {"", "method: ListVolumes, response: repeat-token", "listed twice", false},
		"repeated volume": {"", "method: ListVolumes, response: duplicate-entry", "listed twice", false},
		"old token twice": {"", "method: ListVolumes, code: Aborted, times: 2", "Aborted", false},
		"old token once":  {"", "method: ListVolumes, code: Aborted, times: 1", "", true},
		"internal error":  {"", "method: ListVolumes, code: Internal", "Internal", false},
		"no fault":        {"--volumes=3", "", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			shared := join(t)
			if tc.fault != "" {
				tc.flags = faultFile(t, tc.fault)
			}
			s := withDriver(shared, tc.flags)
			found := audit(s, "--timeout=2s")
			if found.Enumerated != tc.enumerated || (len(found.Orphans) == 3) != tc.enumerated ||
				!strings.Contains(strings.Join(found.Incomplete, "\n"), tc.want) ||
				(len(found.Incomplete) == 0) != (tc.want == "") {
				t.Errorf("report: %+v", found)
			}
			expectNoDeletion(s)
		})
	}
}

func TestUnlistedVolumeNamesNoOrphan(t *testing.T) {
	shared := join(t)
	s := withDriver(shared, faultFile(t, "method: ListVolumes, response: missing-entry"))
	if found := audit(s); !found.Enumerated || len(found.Orphans) != 2 {
		t.Errorf("before the volume is recorded: %+v", found)
	}
	unlisted := store(s, "volume-000001", "") // returns the existing volume
	record(s, "known", unlisted)
	found := audit(s)
	if found.Enumerated || len(found.Orphans)+len(found.Ghosts) > 0 || len(found.Doubtful) != 2 ||
		len(found.Incomplete) != 1 {
		t.Errorf("report: %+v", found)
	}
	expectNoDeletion(s)
}

func TestFileAddsToTheListOfTheDriver(t *testing.T) {
	shared := join(t)
	s := withDriver(shared, "")
	planted, creating := store(s, "planted", ""), store(s, "creating", "")
	claim := s.CreateClaim("pending", "none")
	dir := t.TempDir()
	file, state := filepath.Join(dir, "volumes.json"), filepath.Join(dir, "state.json")
	list := fmt.Sprintf(`{"volumes":[{"handle":%q,"name":"data","age":"5d"},{"handle":%q,"name":"pvc-%s"}]}`, planted,
		creating, claim.UID)
	s.Must(os.WriteFile(file, []byte(list), 0o600), "write volumes")
	found := audit(s, "--volumes="+file, "--state="+state)
	if len(found.Orphans) != 1 || found.Orphans[0].Name != "data" || found.Orphans[0].Age != "5d" ||
		found.Orphans[0].Size != "1Mi" || found.reasons()[creating] != "CreationInFlight" {
		t.Errorf("report: %+v", found)
	}
	if found := audit(s, "--state="+state); len(found.Orphans) != 2 || found.Orphans[0].Age == "" {
		t.Errorf("ages by an earlier report: %+v", found)
	}
}

func TestGhostsAndSharedHandles(t *testing.T) {
	shared := join(t)
	s := withDriver(shared, "")
	twice := store(s, "twice", "")
	first, second := record(s, "one", twice), record(s, "two", twice)
	ghost := record(s, "ghost", "gone")
	released := record(s, "released", "gone-too")
	released.Status.Phase = v1.VolumeReleased
	_, err := s.Client.CoreV1().PersistentVolumes().UpdateStatus(s.Ctx, released, metav1.UpdateOptions{})
	s.Must(err, "release volume")
	terminating := s.CreateVolume("terminating", v1.PersistentVolumeReclaimRetain,
		func(v *v1.PersistentVolume) { v.Finalizers = []string{"example.com/keep"} })
	s.DeleteVolume(terminating.Name)
	found := audit(s)
	if len(found.Ghosts) != 1 || found.Ghosts[0].Name != ghost.Name || found.Ghosts[0].Handle != "gone" {
		t.Errorf("ghosts: %+v", found.Ghosts)
	}
	if len(found.Shared) != 1 || found.Shared[0].Handle != twice || found.Shared[0].Volumes[0].Name != first.Name ||
		found.Shared[0].Volumes[1].Name != second.Name {
		t.Errorf("shared: %+v", found.Shared)
	}
	if !found.Enumerated || len(found.Orphans)+len(found.Doubtful)+len(found.Incomplete) > 0 {
		t.Errorf("report: %+v", found)
	}
	expectNoDeletion(s)
}

// restricted returns a kubeconfig of a user that may list the resources only.
func restricted(s *harness.Session, name string, resources []string) string {
	s.T.Helper()
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: s.Namespace + "-" + name},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: resources, Verbs: []string{"get", "list"}}},
	}
	_, err := s.Client.RbacV1().ClusterRoles().Create(s.Ctx, role, metav1.CreateOptions{})
	s.Must(err, "create role")
	user := sandbox.User(role.Name)
	_, err = s.Client.RbacV1().ClusterRoleBindings().Create(s.Ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name}, RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io",
			Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{APIGroup: "rbac.authorization.k8s.io", Kind: "User", Name: role.Name}},
	}, metav1.CreateOptions{})
	s.Must(err, "bind role")
	kubeconfig, err := s.Plane.Kubeconfig(s.Ctx, user)
	s.Must(err, "write kubeconfig")
	return kubeconfig
}

func TestMissingRightNamesNoOrphan(t *testing.T) {
	shared := join(t)
	shared.SnapshotClient()
	installGroupSnapshots(shared)
	s := withDriver(shared, "--volumes=1")
	all := []string{"persistentvolumes", "persistentvolumeclaims", "pods", "volumeattachments", "leases",
		"volumesnapshotcontents", "volumegroupsnapshotcontents"}
	kubeconfig := restricted(s, "all", all)
	s.Until("the role counts", func() bool {
		found := auditAs(s, kubeconfig)
		return len(found.Orphans) == 1 && len(found.Incomplete) == 0
	})
	for i, missing := range all {
		kubeconfig := restricted(s, missing, slices.Delete(slices.Clone(all), i, i+1))
		want := fmt.Sprintf("grant the verb list on resource %s", missing)
		s.Until("a missing right is told: "+missing, func() bool {
			found := auditAs(s, kubeconfig)
			if len(found.Orphans) > 0 {
				t.Fatalf("without the right to list %s: %+v", missing, found)
			}
			return len(found.Incomplete) == 1 && strings.Contains(found.Incomplete[0], want) && len(found.Doubtful) == 1 &&
				found.Doubtful[0].Reason == "Unresolved"
		})
	}
}

func TestUnreachableClusterIsAnError(t *testing.T) {
	shared := join(t)
	s := withDriver(shared, "")
	listener, err := (&net.ListenConfig{}).Listen(s.Ctx, "tcp", "127.0.0.1:0")
	s.Must(err, "listen")
	defer func() { _ = listener.Close() }()
	hanging := listener.Addr().String()
	for server, want := range map[string]string{"https://127.0.0.1:1": "connection refused",
		"https://" + hanging: "did not answer within 1s"} {
		start := time.Now()
		done := runAudit(s, "--csi-address="+s.Driver.Socket, "--kubeconfig="+s.Plane.AdminKubeconfig, "--server="+server,
			"--timeout=1s", "-o=json")
		if done.status != 1 || !strings.Contains(done.errors, want) || strings.Count(done.errors, "\n") != 1 ||
			done.output != "" || time.Since(start) > 20*time.Second {
			t.Errorf("%s: exit code %d after %s, %s%s", server, done.status, time.Since(start), done.errors, done.output)
		}
	}
}
