package journalctl

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"github.com/exeunt-io/exeunt/pkg/journal"
)

const (
	active     types.UID = "11111111-0000-4000-8000-000000000000"
	discarded  types.UID = "22222222-0000-4000-8000-000000000000"
	unresolved types.UID = "33333333-0000-4000-8000-000000000000"
	second     types.UID = "44444444-0000-4000-8000-000000000000"
	broken     types.UID = "55555555-0000-4000-8000-000000000000"
)

var since = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func newEntry(claim types.UID, change func(*journal.Entry)) journal.Entry {
	volume := "pvc-" + string(claim)
	entry := journal.Entry{
		UID: claim, Namespace: "default", Name: "claim-" + string(claim[:1]), Node: "node-1",
		Request: journal.Request{CreateVolumeRequest: &csi.CreateVolumeRequest{Name: volume,
			Parameters: map[string]string{"type": "fast"}}},
		Volume: &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: volume},
			Spec: v1.PersistentVolumeSpec{PersistentVolumeReclaimPolicy: v1.PersistentVolumeReclaimRetain}},
		Secret: &journal.Secret{Namespace: "kube-system", Name: "credentials", UID: "6"},
	}
	change(&entry)
	return entry
}

func isUnresolved(e *journal.Entry) {
	e.Unresolved = &journal.Unresolved{Reason: "the secret is gone", Since: since.Unix()}
}

func texts(t *testing.T, entries ...journal.Entry) map[types.UID]string {
	t.Helper()
	all := map[types.UID]string{}
	for _, entry := range entries {
		text, err := journal.Encode(entry)
		if err != nil {
			t.Fatal(err)
		}
		all[entry.UID] = text
	}
	return all
}

const unresolvedName = "csi.example.com-unresolved-0"

// newCluster returns a client of a cluster with one journal, and the objects.
func newCluster(t *testing.T, objects ...runtime.Object) *fake.Clientset {
	t.Helper()
	j := journal.Journal{Namespace: "storage", Driver: "csi.example.com"}
	requested := j.Lease(journal.KindActive, 0, "pod", journal.Custody{}, texts(t,
		newEntry(active, func(*journal.Entry) {}),
		newEntry(discarded, func(e *journal.Entry) { e.State, e.Handle = journal.Discarding, "vol-2" })))
	requested.Labels = nil // any user can remove labels
	encoded := texts(t, newEntry(unresolved, isUnresolved), newEntry(second, isUnresolved))
	encoded[broken] = "?"
	unresolved := j.Lease(journal.KindUnresolved, 0, "pod", journal.Custody{}, encoded)
	other := journal.Journal{Namespace: "other", Driver: "other.example.com", Node: "node-7"}.Lease(journal.KindActive, 0,
		"pod", journal.Custody{}, texts(t, newEntry("6", func(*journal.Entry) {})))
	leader := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: "csi-example-com",
		Labels: map[string]string{journal.KindLabel: "active"}}}
	return fake.NewClientset(append([]runtime.Object{requested, unresolved, other, leader}, objects...)...)
}

func list(t *testing.T, client *fake.Clientset, namespace string) EntryList {
	t.Helper()
	found, err := List(t.Context(), client, namespace)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestListFindsAllJournals(t *testing.T) {
	client := newCluster(t)
	states := map[types.UID]entryState{}
	found := list(t, client, "")
	for _, item := range found.Items {
		states[item.ClaimUID] = item.State
	}
	want := map[types.UID]entryState{active: stateRequested, discarded: stateDiscarding, unresolved: stateUnresolved,
		second: stateUnresolved, broken: stateUnreadable, "6": stateRequested}
	if len(states) != len(want) {
		t.Errorf("states = %v", states)
	}
	for uid, state := range want {
		if states[uid] != state {
			t.Errorf("claim %s is %s, want %s", uid, states[uid], state)
		}
	}
	if len(found.Ignored) != 1 || found.Ignored[0].Name != "csi-example-com" {
		t.Errorf("ignored: %v", found.Ignored)
	}
	if got := list(t, client, "other").Items; len(got) != 1 || got[0].Node != "node-7" ||
		got[0].Driver != "other.example.com" {
		t.Errorf("in one namespace: %+v", got)
	}
}

func TestListIsPrinted(t *testing.T) {
	found := list(t, newCluster(t), "storage")
	var table, asJSON, asYAML bytes.Buffer
	for format, out := range map[string]*bytes.Buffer{"": &table, "json": &asJSON, "yaml": &asYAML} {
		if err := found.Print(out, format, since.Add(3*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"STATE", "requested", "discarding", "unreadable", "default/claim-3",
		"pvc-" + string(unresolved), "3h", "the secret is gone", "csi.example.com"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, table.String())
		}
	}
	converted, err := yaml.YAMLToJSON(asYAML.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range [][]byte{asJSON.Bytes(), converted} {
		var decoded struct {
			Items []struct {
				State, ClaimUID string
				Entry           *struct{ Request map[string]any }
			}
		}
		if err := json.Unmarshal(text, &decoded); err != nil || len(decoded.Items) != 5 {
			t.Fatalf("%v:\n%s", err, text)
		}
		for _, item := range decoded.Items {
			if (item.Entry == nil) != (item.State == "unreadable") {
				t.Errorf("item %+v", item)
			}
		}
	}
	empty := EntryList{}
	table.Reset()
	if err := empty.Print(&table, "", since); err != nil || table.String() != "No journal entries found.\n" {
		t.Errorf("empty: %q, %v", table.String(), err)
	}
}

func TestControlCharactersAreNotPrinted(t *testing.T) {
	found := EntryList{Items: []entryItem{{State: stateUnresolved, Reason: "\x1b[2Jgone\nforged line\u009b"}}}
	var out bytes.Buffer
	if err := found.Print(&out, "", since); err != nil || strings.ContainsAny(out.String(), "\x1b\u009b") ||
		strings.Count(out.String(), "\n") != 2 {
		t.Errorf("printed %q, %v", out.String(), err)
	}
}

func newClaim(uid types.UID, phase v1.PersistentVolumeClaimPhase, volume string) *v1.PersistentVolumeClaim {
	return &v1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "claim-3", UID: uid},
		Spec:       v1.PersistentVolumeClaimSpec{VolumeName: volume}, Status: v1.PersistentVolumeClaimStatus{Phase: phase},
	}
}

func newVolume(claim types.UID) *v1.PersistentVolume {
	return &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: volumeName},
		Spec:       v1.PersistentVolumeSpec{ClaimRef: &v1.ObjectReference{UID: claim}},
	}
}

const volumeName = "pvc-" + string(unresolved)

// end runs the command and returns its output.
func end(ctx context.Context, client *fake.Clientset, c command, input io.Reader, yes bool,
	claims ...types.UID) (string, error) {
	var out bytes.Buffer
	resolver := Resolver{Client: client, Out: &out, In: input, Yes: yes, Timeout: time.Second}
	run := resolver.Finish
	if c == drop {
		run = resolver.Drop
	}
	err := run(ctx, claims)
	return out.String(), err
}

func patched(client *fake.Clientset) bool {
	for _, action := range client.Actions() {
		if action.GetVerb() != "list" && action.GetVerb() != "get" && action.GetVerb() != "watch" {
			return true
		}
	}
	return false
}

func TestRefusedCommandChangesNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		claims  []types.UID
		objects []runtime.Object
		finish  bool
		drop    bool
		want    string
	}{
		"requested":            {claims: []types.UID{active}, finish: true, drop: true, want: "wait"},
		"being discarded":      {claims: []types.UID{discarded}, finish: true, drop: true, want: "discarding"},
		"unknown claim":        {claims: []types.UID{"unknown"}, finish: true, drop: true, want: "unknown"},
		"unreadable":           {claims: []types.UID{broken}, finish: true, drop: true, want: "kubectl annotate"},
		"one of two requested": {claims: []types.UID{unresolved, active}, finish: true, drop: true, want: "wait"},
		"claim bound": {claims: []types.UID{unresolved},
			objects: []runtime.Object{newClaim(unresolved, v1.ClaimBound, volumeName)}, finish: true, want: "is bound to the volume"},
		"claim lost":                 {claims: []types.UID{unresolved}, objects: []runtime.Object{newClaim(unresolved, v1.ClaimLost, volumeName)}, finish: true, want: "drop the entry"},
		"volume recorded":            {claims: []types.UID{unresolved}, objects: []runtime.Object{newVolume(unresolved)}, finish: true, want: "records the volume"},
		"name conflict":              {claims: []types.UID{unresolved}, objects: []runtime.Object{newVolume("another")}, finish: true, want: "does not refer to the claim"},
		"neither terminal nor --yes": {claims: []types.UID{unresolved}, drop: true, want: "--yes"},
		"bound, not recorded":        {claims: []types.UID{unresolved}, objects: []runtime.Object{newClaim(unresolved, v1.ClaimBound, volumeName)}, drop: true, want: volumeName},
	} {
		for c, applies := range map[command]bool{finish: tc.finish, drop: tc.drop} {
			if !applies {
				continue
			}
			t.Run(name, func(t *testing.T) {
				client := newCluster(t, tc.objects...)
				_, err := end(t.Context(), client, c, nil, false, tc.claims...)
				if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") {
					t.Errorf("error = %v, want %q in one line", err, tc.want)
				}
				if patched(client) {
					t.Error("an object was changed")
				}
			})
		}
	}
}

// The entry of a volume that was to be discarded names its handle, and the claim may have another
// volume since.
func TestVolumeWithAnotherHandleIsNoRecord(t *testing.T) {
	j := journal.Journal{Namespace: "storage", Driver: "csi.example.com"}
	for handle, asks := range map[string]bool{"vol-1": false, "vol-2": true} {
		entry := newEntry("7", func(e *journal.Entry) { isUnresolved(e); e.State, e.Handle = journal.Discarding, "vol-1" })
		lease := j.Lease(journal.KindUnresolved, 1, "pod", journal.Custody{}, texts(t, entry))
		recorded := newVolume("7")
		recorded.Name = "pvc-7"
		recorded.Spec.CSI = &v1.CSIPersistentVolumeSource{Driver: "csi.example.com", VolumeHandle: handle}
		out, err := end(t.Context(), newCluster(t, lease, recorded), drop, nil, false, "7")
		if (err != nil) != asks || asks && !strings.Contains(out, "records handle vol-2, not vol-1") {
			t.Errorf("%s: printed %q, error %v", handle, out, err)
		}
	}
}

// The provisioner leaves an unreadable entry alone, and writes it again with the others.
func TestUnreadableEntryOfActiveLeaseIsNotWaitedFor(t *testing.T) {
	j := journal.Journal{Namespace: "storage", Driver: "csi.example.com"}
	lease := j.Lease(journal.KindActive, 1, "pod", journal.Custody{}, map[types.UID]string{"7": "?"})
	for _, c := range []command{finish, drop} {
		_, err := end(t.Context(), newCluster(t, lease), c, nil, true, "7")
		if err == nil || strings.Contains(err.Error(), "wait") || !strings.Contains(err.Error(), "stop the provisioner of csi.example.com") {
			t.Errorf("%v: %v, want that the provisioner has to be stopped", c, err)
		}
	}
}

func TestClaimThatIsNamedTwiceIsEndedOnce(t *testing.T) {
	out, err := end(t.Context(), newCluster(t), drop, nil, true, unresolved, second, unresolved)
	if err != nil || strings.Count(out, " is removed from Lease ") != 2 {
		t.Errorf("printed %q, error %v", out, err)
	}
}

func remaining(t *testing.T, client *fake.Clientset) map[types.UID]journal.Entry {
	t.Helper()
	lease, err := client.CoordinationV1().Leases("storage").Get(t.Context(), unresolvedName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	all := map[types.UID]journal.Entry{}
	entries, _ := journal.Entries(lease)
	for _, entry := range entries {
		all[entry.UID] = entry
	}
	return all
}

func TestEntryIsDropped(t *testing.T) {
	for name, tc := range map[string]struct {
		objects []runtime.Object
		answer  string
		yes     bool
		want    bool
	}{
		"volume recorded":          {objects: []runtime.Object{newVolume(unresolved)}, want: true},
		"with --yes":               {yes: true, want: true},
		"answer y":                 {answer: "y\n", want: true},
		"answer Yes":               {answer: " Yes \n", want: true},
		"answer n":                 {answer: "n\n"},
		"empty answer":             {answer: "\n"},
		"end of input":             {answer: ""},
		"answer without a newline": {answer: "y"},
	} {
		t.Run(name, func(t *testing.T) {
			client := newCluster(t, tc.objects...)
			_, err := end(t.Context(), client, drop, strings.NewReader(tc.answer), tc.yes, unresolved)
			if _, there := remaining(t, client)[unresolved]; there == tc.want || (err == nil) != tc.want {
				t.Errorf("error %v, entry is there: %v", err, there)
			}
			if _, there := remaining(t, client)[second]; !there {
				t.Error("another entry is gone")
			}
		})
	}
}

func TestConcurrentlyChangedEntryIsKept(t *testing.T) {
	for _, c := range []command{finish, drop} {
		client := newCluster(t)
		client.PrependReactor("patch", "leases", func(patch clienttesting.Action) (bool, runtime.Object, error) {
			if got := string(patch.(clienttesting.PatchAction).GetPatch()); !strings.Contains(got, `"op":"test"`) {
				t.Errorf("patch without a test: %s", got)
			}
			changed := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: patch.GetNamespace(), Name: unresolvedName}}
			if err := client.Tracker().Update(patch.GetResource(), changed, patch.GetNamespace()); err != nil {
				t.Error(err)
			}
			return true, nil, apierrors.NewInvalid(coordinationv1.SchemeGroupVersion.WithKind("Lease").GroupKind(), unresolvedName, nil)
		})
		if _, err := end(t.Context(), client, c, nil, true, unresolved); err == nil || !strings.Contains(err.Error(), "changed meanwhile") {
			t.Errorf("%v: %v", c, err)
		}
	}
}

func TestListStartsOverOnceAfterExpiredToken(t *testing.T) {
	for name, tc := range map[string]struct{ expired, want int }{"once": {1, 5}, "again and again": {9, 0}} {
		t.Run(name, func(t *testing.T) {
			client := newCluster(t)
			calls := 0
			client.PrependReactor("list", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
				calls++
				switch {
				case calls%2 == 1 && calls/2 < tc.expired:
					return true, &coordinationv1.LeaseList{ListMeta: metav1.ListMeta{ResourceVersion: "7", Continue: "t"}, Items: []coordinationv1.Lease{*lease(t, client, unresolvedName)}}, nil
				case calls%2 == 0 && calls/2 <= tc.expired:
					return true, nil, apierrors.NewResourceExpired("the provided continue parameter is too old")
				}
				return false, nil, nil
			})
			found, err := List(t.Context(), client, "storage")
			if len(found.Items) != tc.want || (err == nil) != (tc.want > 0) {
				t.Errorf("%d entries, error %v, want %d entries", len(found.Items), err, tc.want)
			}
		})
	}
}

// lease returns a Lease as it is stored.
func lease(t *testing.T, client *fake.Clientset, name string) *coordinationv1.Lease {
	t.Helper()
	stored, err := client.Tracker().Get(coordinationv1.SchemeGroupVersion.WithResource("leases"), "storage", name)
	if err != nil {
		t.Fatal(err)
	}
	return stored.(*coordinationv1.Lease)
}

func TestQuestionEndsWithTheContext(t *testing.T) {
	terminal, _ := io.Pipe() // nobody types
	interrupted := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(interrupted)
	ended := make(chan error, 1)
	client := newCluster(t)
	go func() {
		_, err := end(ctx, client, drop, terminal, false, unresolved)
		ended <- err
	}()
	select {
	case err := <-ended:
		if !errors.Is(err, interrupted) || patched(client) {
			t.Errorf("error = %v, an object was changed: %v", err, patched(client))
		}
	case <-time.After(10 * time.Second):
		t.Error("the question is still open")
	}
}
