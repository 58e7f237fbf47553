package journalctl

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"github.com/exeunt-io/exeunt/pkg/journal"
)

// ofNode is the claim of the active entry in the journal of node-7.
const ofNode types.UID = "6"

// No provisioner ends the entries of a node that never comes back.
func TestActiveEntryIsDroppedOnlyIfItsNodeIsGone(t *testing.T) {
	recorded := newVolume(ofNode)
	recorded.Name = "pvc-" + string(ofNode)
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-7"}}
	for name, tc := range map[string]struct {
		command    command
		objects    []runtime.Object
		unreadable bool
		yes        bool
		want       string // in the error, "" for success
	}{
		"node gone":                      {command: drop, yes: true},
		"node gone, nobody agrees":       {command: drop, want: "--yes"},
		"node gone, volume recorded":     {command: drop, objects: []runtime.Object{recorded}, want: "--yes"},
		"node exists":                    {command: drop, objects: []runtime.Object{node}, yes: true, want: "wait"},
		"node unreadable":                {command: drop, unreadable: true, yes: true, want: "read Node node-7, nothing was changed"},
		"node gone, finish":              {command: finish, yes: true, want: "drop the entry"},
		"node exists, finish":            {command: finish, objects: []runtime.Object{node}, yes: true, want: "wait"},
		"finish, and node is unreadable": {command: finish, unreadable: true, yes: true, want: "read Node node-7"},
	} {
		t.Run(name, func(t *testing.T) {
			client := newCluster(t, tc.objects...)
			client.PrependReactor("get", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
				return tc.unreadable, nil, errors.New("no right to get nodes")
			})
			out, err := end(t.Context(), client, tc.command, nil, tc.yes, ofNode)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("error = %v, want %q:\n%s", err, tc.want, out)
			}
			if patched(client) != (tc.want == "") {
				t.Errorf("Lease patched: %v", patched(client))
			}
			if strings.Contains(out, "Node node-7 does not exist") != (tc.command == drop &&
				(tc.want == "" || tc.want == "--yes")) {
				t.Errorf("printed:\n%s", out)
			}
			left := list(t, client, "other").Items
			if len(left) == 0 != (tc.want == "") {
				t.Errorf("left: %+v", left)
			}
		})
	}
}

// The journal of a driver with one provisioner for all nodes is served whichever nodes exist.
func TestActiveEntryWithGoneSelectedNodeIsNotDropped(t *testing.T) {
	client := newCluster(t)
	if selected := list(t, client, "storage").Items[0].Node; selected != "node-1" {
		t.Fatalf("the selected node is %q", selected)
	}
	if _, err := end(t.Context(), client, drop, nil, true, active); err == nil || !strings.Contains(err.Error(), "wait") ||
		patched(client) {
		t.Errorf("error = %v", err)
	}
}

// An unreadable entry of a gone node names no volume to look for.
func TestUnreadableEntryOfGoneNodeIsNotDropped(t *testing.T) {
	j := journal.Journal{Namespace: "storage", Driver: "csi.example.com", Node: "node-7"}
	client := newCluster(t, j.Lease(journal.KindActive, 0, "pod", journal.Custody{}, map[types.UID]string{"7": "?"}))
	if _, err := end(t.Context(), client, drop, nil, true, "7"); err == nil ||
		!strings.Contains(err.Error(), "kubectl annotate") || patched(client) {
		t.Errorf("error = %v", err)
	}
}

// A webhook chooses the code of its denial. Only a read shows that the entry has changed.
func TestDenialOfUnchangedEntryIsShown(t *testing.T) {
	leases, denial := schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"},
		errors.New("denied by the webhook w")
	for name, tc := range map[string]struct {
		answer error
		change func(*coordinationv1.Lease) *coordinationv1.Lease // nil for none
		want   string
	}{
		"404": {apierrors.NewNotFound(leases, denial.Error()), nil, denial.Error()},
		"409": {apierrors.NewConflict(leases, "lease", denial), nil, denial.Error()},
		"422": {invalid(denial.Error()), nil, denial.Error()},
		"422, entry has changed": {invalid("test failed"),
			func(l *coordinationv1.Lease) *coordinationv1.Lease { l.Annotations = nil; return l }, "has changed meanwhile"},
		"404, the Lease is gone": {apierrors.NewNotFound(leases, "lease"),
			func(*coordinationv1.Lease) *coordinationv1.Lease { return nil }, "has changed meanwhile"},
		"403, entry has changed": {apierrors.NewForbidden(leases, "lease", denial),
			func(l *coordinationv1.Lease) *coordinationv1.Lease { l.Annotations = nil; return l }, denial.Error()},
		"404, Lease is not found": {apierrors.NewNotFound(leases, denial.Error()),
			func(l *coordinationv1.Lease) *coordinationv1.Lease { l.Name = "unreadable"; return l }, denial.Error()},
	} {
		for _, c := range []command{drop, finish} {
			t.Run(fmt.Sprint(name, c), func(t *testing.T) {
				client, refused := newCluster(t), false
				client.PrependReactor("patch", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
					refused = true
					return true, nil, tc.answer
				})
				client.PrependReactor("get", "leases", func(action clienttesting.Action) (bool, runtime.Object, error) {
					_, object, err := clienttesting.ObjectReaction(client.Tracker())(action)
					lease, _ := object.(*coordinationv1.Lease)
					if !refused || tc.change == nil || err != nil {
						return true, object, err
					}
					if lease = tc.change(lease); lease == nil {
						return true, nil, apierrors.NewNotFound(leases, action.(clienttesting.GetAction).GetName())
					}
					return true, lease, nil
				})
				if _, err := end(t.Context(), client, c, nil, true, unresolved); !refused || err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("error = %v, want %q", err, tc.want)
				}
			})
		}
	}
}

func invalid(message string) error {
	err := apierrors.NewInvalid(schema.GroupKind{Group: "coordination.k8s.io", Kind: "Lease"}, "lease", nil)
	err.ErrStatus.Message = message
	return err
}
