package storage

import (
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// journalCommand runs "exeunt journal" as the administrator, without a terminal.
func journalCommand(t *testing.T, c *harness.Cluster, args ...string) (output string, status int) {
	t.Helper()
	path, err := harness.Binaries().Path("exeunt")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), harness.Timeout)
	defer cancel()
	command := exec.CommandContext(ctx, path, append([]string{"journal", "--kubeconfig=" + c.Plane.AdminKubeconfig},
		args...)...)
	text, err := command.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("exeunt journal %q: %v", args, err)
	}
	return string(text), command.ProcessState.ExitCode()
}

// journalOf returns a journal that no provisioner of the cluster writes.
var journalOf = journal.Journal{Namespace: deploy.Namespace, Driver: "journal.example.com"}

func writeLease(t *testing.T, c *harness.Cluster, kind journal.Kind, claims ...types.UID) {
	t.Helper()
	texts := map[types.UID]string{}
	for _, claim := range claims {
		volume := "pvc-" + string(claim)
		entry := journal.Entry{
			UID: claim, Namespace: "default", Name: "gone",
			Request: journal.Request{CreateVolumeRequest: &csi.CreateVolumeRequest{Name: volume}},
			Volume:  &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: volume}},
		}
		if kind == journal.KindUnresolved {
			entry.Unresolved = &journal.Unresolved{Reason: "the secret is gone", Since: 1767323045}
		}
		text, err := journal.Encode(entry)
		if err != nil {
			t.Fatal(err)
		}
		texts[claim] = text
	}
	lease := journalOf.Lease(kind, 0, "nobody_exeunt", journal.Custody{Written: 1}, texts)
	if _, err := c.Client.CoordinationV1().Leases(lease.Namespace).
		Create(t.Context(), lease, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func apartEntries(t *testing.T, c *harness.Cluster) (*coordinationv1.Lease, map[types.UID]journal.Entry) {
	t.Helper()
	lease, err := c.Client.CoordinationV1().Leases(journalOf.Namespace).
		Get(t.Context(), journalOf.LeaseName(journal.KindUnresolved, 0), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	entries, broken := journal.Entries(lease)
	if len(broken) > 0 {
		t.Errorf("unreadable: %v", broken)
	}
	all := map[types.UID]journal.Entry{}
	for _, entry := range entries {
		all[entry.UID] = entry
	}
	return lease, all
}

func TestJournalCommandEndsUnresolvedEntriesOnly(t *testing.T) {
	t.Parallel()
	c := harness.OwnCluster(t, harness.Setup{NoPrograms: true})
	const active, first, second = types.UID("a1a1a1a1-0000-4000-8000-000000000000"),
		types.UID("b2b2b2b2-0000-4000-8000-000000000000"), types.UID("c3c3c3c3-0000-4000-8000-000000000000")
	writeLease(t, c, journal.KindActive, active)
	writeLease(t, c, journal.KindUnresolved, first, second)

	expectListed(t, c)
	expectRefused(t, c, string(first), string(active))
	text, status := journalCommand(t, c, "drop", "--yes", string(first))
	if status != 0 || !strings.Contains(text, "pvc-"+string(first)) {
		t.Errorf("drop: exit status %d:\n%s", status, text)
	}
	if _, left := apartEntries(t, c); len(left) != 1 || left[second].Unresolved == nil {
		t.Errorf("after drop: %+v", left)
	}
	text, status = journalCommand(t, c, "finish", "--yes", "--timeout=1s", string(second))
	if status == 0 || !strings.Contains(text, "no provisioner of journal.example.com") {
		t.Errorf("finish without a provisioner: exit status %d:\n%s", status, text)
	}
	if _, left := apartEntries(t, c); !left[second].Unresolved.Finish {
		t.Error("the entry is not approved")
	}
}

// expectListed checks the list of two unresolved entries and of one active entry.
func expectListed(t *testing.T, c *harness.Cluster) {
	t.Helper()
	table, status := journalCommand(t, c, "list")
	if status != 0 || !strings.Contains(table, "requested") || !strings.Contains(table, "unresolved") ||
		!strings.Contains(table, "default/gone") || !strings.Contains(table, "the secret is gone") {
		t.Errorf("list: exit status %d:\n%s", status, table)
	}
	text, status := journalCommand(t, c, "list", "-n", deploy.Namespace, "-o", "json")
	var decoded struct {
		Items []struct{ State, ClaimUID, VolumeName string }
	}
	if err := json.Unmarshal([]byte(text), &decoded); err != nil || status != 0 || len(decoded.Items) != 3 {
		t.Errorf("list -o json: %v, exit status %d:\n%s", err, status, text)
	}
	if text, status = journalCommand(t, c, "list", "-n", "default"); status != 0 ||
		!strings.Contains(text, "No journal entries") {
		t.Errorf("list -n default: exit status %d:\n%s", status, text)
	}
}

// expectRefused checks that each wrong command fails and leaves the Lease unchanged.
func expectRefused(t *testing.T, c *harness.Cluster, unresolved, active string) {
	t.Helper()
	before, _ := apartEntries(t, c)
	for name, args := range map[string][]string{
		"drop active entry":            {"drop", "--yes", active},
		"finish active entry":          {"finish", active},
		"unknown UID":                  {"drop", "--yes", "d4d4d4d4-0000-4000-8000-000000000000"},
		"one of two entries is active": {"drop", "--yes", unresolved, active},
		"neither terminal nor --yes":   {"drop", unresolved},
	} {
		if text, status := journalCommand(t, c, args...); status == 0 {
			t.Errorf("%s: exit status 0:\n%s", name, text)
		}
	}
	if after, _ := apartEntries(t, c); after.ResourceVersion != before.ResourceVersion {
		t.Error("a failed command has changed the Lease")
	}
}

// The test acts as the provisioner: it takes the entry once the entry is approved.
func TestJournalCommandReportsEntryTakenByProvisioner(t *testing.T) {
	t.Parallel()
	c := harness.OwnCluster(t, harness.Setup{NoPrograms: true})
	const claim = types.UID("e5e5e5e5-0000-4000-8000-000000000000")
	writeLease(t, c, journal.KindUnresolved, claim)
	watcher, err := c.Client.CoordinationV1().Leases(journalOf.Namespace).
		Watch(t.Context(), metav1.ListOptions{LabelSelector: journal.KindLabel})
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Stop()
	taken := make(chan error, 1)
	go func() {
		for event := range watcher.ResultChan() {
			lease, is := event.Object.(*coordinationv1.Lease)
			entries, _ := journal.Entries(lease)
			if !is || len(entries) == 0 || !entries[0].Unresolved.Finish {
				continue
			}
			next := journalOf.Lease(journal.KindUnresolved, 0, "pod_exeunt", journal.Custody{Written: 1}, nil)
			next.ResourceVersion = lease.ResourceVersion
			_, err := c.Client.CoordinationV1().Leases(lease.Namespace).Update(t.Context(), next, metav1.UpdateOptions{})
			taken <- err
			return
		}
	}()
	text, status := journalCommand(t, c, "finish", "--yes", string(claim))
	if status != 0 || !strings.Contains(text, "has taken the entry") {
		t.Errorf("finish: exit status %d:\n%s", status, text)
	}
	if err := <-taken; err != nil {
		t.Error(err)
	}
	lease, left := apartEntries(t, c)
	if len(left) != 0 || len(lease.ManagedFields) > 0 {
		t.Errorf("left: %+v, managed fields %v", left, lease.ManagedFields)
	}
}
