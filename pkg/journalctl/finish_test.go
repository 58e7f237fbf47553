package journalctl

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/exeunt-io/exeunt/pkg/journal"
)

func TestFinishWaitsForProvisioner(t *testing.T) {
	for name, tc := range map[string]struct {
		provisioner func(*testing.T, *fake.Clientset, *coordinationv1.Lease)
		want        string
	}{
		"takes over the entry": {func(t *testing.T, client *fake.Clientset, lease *coordinationv1.Lease) {
			delete(lease.Annotations, journal.EntryPrefix+string(unresolved))
			update(t, client, lease)
		}, ""},
		"takes nothing, and somebody deletes the Lease": {func(t *testing.T, client *fake.Clientset,
			lease *coordinationv1.Lease) {
			if err := client.CoordinationV1().Leases("storage").Delete(t.Context(), lease.Name,
				metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		}, "was deleted"},
		"fails again": {func(t *testing.T, client *fake.Clientset, lease *coordinationv1.Lease) {
			lease.Annotations[journal.EntryPrefix+string(unresolved)] = texts(t, newEntry(unresolved, isUnresolved))[unresolved]
			update(t, client, lease)
		}, "unresolved again: the secret is gone"},
		"does not run": {func(*testing.T, *fake.Clientset, *coordinationv1.Lease) {}, "no provisioner of csi.example.com"},
	} {
		t.Run(name, func(t *testing.T) {
			client := newCluster(t)
			client.PrependWatchReactor("leases", func(clienttesting.Action) (bool, watch.Interface, error) {
				lease, err := client.Tracker().Get(coordinationv1.SchemeGroupVersion.WithResource("leases"), "storage",
					unresolvedName)
				if err != nil {
					t.Error(err)
				}
				go tc.provisioner(t, client, lease.(*coordinationv1.Lease).DeepCopy())
				return false, nil, nil
			})
			_, err := end(t.Context(), client, finish, nil, false, unresolved)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("error = %v, want %q", err, tc.want)
			}
			if tc.want != "" && strings.HasPrefix(tc.want, "no") && !remaining(t, client)[unresolved].Unresolved.Finish {
				t.Error("finish is not requested in the entry")
			}
		})
	}
}

// After the patch the list may come from a cache that has not seen the patch yet.
func TestStaleLeaseIsNoAnswer(t *testing.T) {
	client := newCluster(t)
	at := func(version string) *coordinationv1.Lease {
		copied := lease(t, client, unresolvedName).DeepCopy()
		copied.ResourceVersion = version
		return copied
	}
	client.PrependReactor("patch", "leases",
		func(clienttesting.Action) (bool, runtime.Object, error) { return true, at("10"), nil })
	client.PrependReactor("list", "leases", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.(clienttesting.ListAction).GetListRestrictions().Fields.Empty() {
			return false, nil, nil
		}
		return true, &coordinationv1.LeaseList{ListMeta: metav1.ListMeta{ResourceVersion: "9"},
			Items: []coordinationv1.Lease{*at("9")}}, nil
	})
	taken := at("11")
	delete(taken.Annotations, journal.EntryPrefix+string(unresolved))
	client.PrependWatchReactor("leases", func(clienttesting.Action) (bool, watch.Interface, error) {
		events := watch.NewFakeWithChanSize(1, false)
		events.Modify(taken)
		return true, events, nil
	})
	if out, err := end(t.Context(), client, finish, nil, false, unresolved); err != nil ||
		!strings.Contains(out, "has taken the entry") {
		t.Errorf("printed %q, error %v", out, err)
	}
}

func update(t *testing.T, client *fake.Clientset, lease *coordinationv1.Lease) {
	t.Helper()
	if _, err := client.CoordinationV1().Leases("storage").Update(t.Context(), lease, metav1.UpdateOptions{}); err != nil {
		t.Error(err)
	}
}

// Without its request an entry can only lead to the deletion of the volume.
func TestFinishRefusesDiscardWithoutRequest(t *testing.T) {
	client := newCluster(t)
	lease, err := client.CoordinationV1().Leases("storage").Get(t.Context(), unresolvedName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	lease.Annotations[journal.EntryPrefix+string(unresolved)] = texts(t, newEntry(unresolved, func(e *journal.Entry) {
		isUnresolved(e)
		e.State, e.Handle = journal.Discarding, "disk-1"
	}))[unresolved]
	update(t, client, lease)
	err = Resolver{Client: client, Out: io.Discard, Yes: true, Timeout: time.Second}.Finish(t.Context(),
		[]types.UID{unresolved})
	if err == nil || !strings.Contains(err.Error(), "would delete a volume that a user may have kept") {
		t.Errorf("Finish = %v", err)
	}
}

// withPolicy stores the entry of claim UID 7 with the policy among the unresolved ones.
func withPolicy(t *testing.T, policy v1.PersistentVolumeReclaimPolicy, announced bool) *coordinationv1.Lease {
	t.Helper()
	entry := newEntry("7", func(e *journal.Entry) {
		isUnresolved(e)
		e.Name, e.Announced = "claim-3", announced
		e.Volume.Spec.PersistentVolumeReclaimPolicy = policy
	})
	j := journal.Journal{Namespace: "storage", Driver: "csi.example.com"}
	return j.Lease(journal.KindUnresolved, 1, "pod", journal.Custody{}, texts(t, entry))
}

// refusePatches ends a command that has passed all questions, so that it waits for no provisioner.
func refusePatches(client *fake.Clientset) {
	client.PrependReactor("patch", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("the Lease cannot be patched")
	})
}

// A user may have deleted claim and PersistentVolume to keep the disk: a finish would delete it.
func TestFinishAsksBeforeVolumeIsDeleted(t *testing.T) {
	leaving := newClaim("7", v1.ClaimPending, "")
	leaving.DeletionTimestamp, leaving.Finalizers = &metav1.Time{Time: since}, []string{"kubernetes.io/pvc-protection"}
	for name, tc := range map[string]struct {
		policy    v1.PersistentVolumeReclaimPolicy
		announced bool
		claim     *v1.PersistentVolumeClaim
		want      string
	}{
		"claim gone, policy Delete":       {policy: v1.PersistentVolumeReclaimDelete, want: "and then deleted with its data"},
		"claim gone, policy not recorded": {want: "and then deleted with its data"},
		"another claim of the name":       {policy: v1.PersistentVolumeReclaimDelete, claim: newClaim("8", v1.ClaimPending, ""), want: "is gone"},
		"claim being deleted":             {policy: v1.PersistentVolumeReclaimDelete, claim: leaving, want: "is being deleted"},
		"claim names another volume": {policy: v1.PersistentVolumeReclaimDelete,
			claim: newClaim("7", v1.ClaimBound, "other"), want: "names another volume"},
		"claim gone, PersistentVolume removed":  {policy: v1.PersistentVolumeReclaimRetain, announced: true, want: "deletes the volume with its data"},
		"claim gone, policy Retain":             {policy: v1.PersistentVolumeReclaimRetain},
		"claim wants the volume, policy Delete": {policy: v1.PersistentVolumeReclaimDelete, claim: newClaim("7", v1.ClaimPending, "")},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []runtime.Object{withPolicy(t, tc.policy, tc.announced)}
			if tc.claim != nil {
				objects = append(objects, tc.claim)
			}
			client := newCluster(t, objects...)
			refusePatches(client)
			out, err := end(t.Context(), client, finish, strings.NewReader("\n"), false, "7")
			switch {
			case err == nil:
				t.Errorf("Finish succeeded:\n%s", out)
			case tc.want == "" && !patched(client):
				t.Errorf("error = %v, want the finish requested", err)
			case tc.want != "" && (patched(client) || !strings.Contains(out, tc.want) ||
				!strings.Contains(err.Error(), "the answer was not y")):
				t.Errorf("error = %v, Lease patched: %v, want a question with %q:\n%s", err, patched(client), tc.want, out)
			}
		})
	}
}

// Scripts name the entry by its UID, and are told what they do.
func TestFinishWithoutATerminalSaysWhatItDoes(t *testing.T) {
	client := newCluster(t, withPolicy(t, v1.PersistentVolumeReclaimDelete, false))
	refusePatches(client)
	out, err := end(t.Context(), client, finish, nil, false, "7")
	if err == nil || !patched(client) || !strings.Contains(out, "and then deleted with its data") ||
		!strings.Contains(out, "no terminal") {
		t.Errorf("error = %v, Lease patched: %v:\n%s", err, patched(client), out)
	}
}

func TestFinishTakesAnswer(t *testing.T) {
	for name, tc := range map[string]struct {
		answer string
		yes    bool
		want   bool
	}{
		"with --yes": {yes: true, want: true},
		"answer y":   {answer: "y\n", want: true},
		"answer n":   {answer: "n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			client := newCluster(t, withPolicy(t, v1.PersistentVolumeReclaimDelete, false))
			refusePatches(client)
			out, err := end(t.Context(), client, finish, strings.NewReader(tc.answer), tc.yes, "7")
			if err == nil || patched(client) != tc.want {
				t.Errorf("error = %v, Lease patched: %v, want %v:\n%s", err, patched(client), tc.want, out)
			}
		})
	}
}

// slowAnswer agrees after something has happened.
type slowAnswer struct {
	happens func()
	answer  io.Reader
}

func (s slowAnswer) Read(text []byte) (int, error) {
	s.happens()
	return s.answer.Read(text)
}

// The administrator may think for an hour.
func TestFinishChecksAgainAfterTheAnswer(t *testing.T) {
	client := newCluster(t, withPolicy(t, v1.PersistentVolumeReclaimDelete, false))
	refusePatches(client)
	appears := func() { _ = client.Tracker().Add(newClaim("7", v1.ClaimPending, "")) }
	out, err := end(t.Context(), client, finish, slowAnswer{appears, strings.NewReader("y\n")}, false, "7")
	if err == nil || patched(client) || !strings.Contains(err.Error(), "run the command again") {
		t.Errorf("error = %v, Lease patched: %v:\n%s", err, patched(client), out)
	}
}
