package journalctl

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/exeunt-io/exeunt/pkg/journal"
)

// State is what an item of the list stands for.
type State string

const (
	// Requested: the provisioner calls CreateVolume, or is about to.
	Requested State = "requested"
	// Discarding: the provisioner calls DeleteVolume for a volume that serves no claim.
	Discarding State = "discarding"
	// Unresolved: only an administrator can end the entry.
	Unresolved State = "unresolved"
	// Unreadable: the annotation is no entry of a known format.
	Unreadable State = "unreadable"
)

// Item is one entry of a journal.
type Item struct {
	State    State     `json:"state"`
	Driver   string    `json:"driver"`
	Node     string    `json:"node,omitempty"`
	Lease    Reference `json:"lease"`
	Claim    Reference `json:"claim"`
	ClaimUID types.UID `json:"claimUID"`
	Volume   string    `json:"volumeName,omitempty"`
	Reason   string    `json:"reason,omitempty"`
	// Since is when the entry became unresolved.
	Since *metav1.Time `json:"since,omitempty"`
	// Finish: "finish" was requested, and no provisioner has taken the entry yet.
	Finish bool `json:"finish,omitempty"`
	// Entry is the decoded entry, which has no secrets; nil if it is unreadable.
	Entry *journal.Entry `json:"entry,omitempty"`

	unresolved bool
	text       string
}

// Reference names an object of a namespace.
type Reference struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// String returns namespace/name.
func (r Reference) String() string { return r.Namespace + "/" + r.Name }

// Journals are the entries of a cluster.
type Journals struct {
	Items []Item `json:"items"`
	// Ignored are Leases with the label of a journal that are not part of one.
	Ignored []Reference `json:"ignoredLeases,omitempty"`
}

// pageSize is how many Leases are read at a time.
const pageSize = 500

// List reads the entries of all journals in the namespace, "" for all namespaces.
// Labels do not count: any user can remove them.
func List(ctx context.Context, client kubernetes.Interface, namespace string) (Journals, error) {
	found := Journals{Items: []Item{}}
	options := metav1.ListOptions{Limit: pageSize}
	for {
		page, err := client.CoordinationV1().Leases(namespace).List(ctx, options)
		if err != nil {
			return Journals{}, fmt.Errorf("list Leases: %w", err)
		}
		for i := range page.Items {
			found.add(&page.Items[i])
		}
		if options.Continue = page.Continue; options.Continue == "" {
			break
		}
	}
	slices.SortFunc(found.Items, func(a, b Item) int {
		return cmp.Or(cmp.Compare(a.Lease.String(), b.Lease.String()), cmp.Compare(a.ClaimUID, b.ClaimUID))
	})
	return found, nil
}

func (j *Journals) add(lease *coordinationv1.Lease) {
	owner, kind, _, is := journal.Find(lease)
	if !is {
		if _, labeled := lease.Labels[journal.KindLabel]; labeled {
			j.Ignored = append(j.Ignored, Reference{lease.Namespace, lease.Name})
		}
		return
	}
	for uid, text := range journal.Encoded(lease) {
		item := Item{
			State: Unreadable, Driver: owner.Driver, Node: owner.Node,
			Lease: Reference{lease.Namespace, lease.Name}, ClaimUID: uid, unresolved: kind == journal.KindUnresolved, text: text,
		}
		if entry, err := journal.Decode(uid, text); err != nil {
			item.Reason = err.Error()
		} else {
			item.describe(entry)
		}
		j.Items = append(j.Items, item)
	}
}

func (i *Item) describe(entry journal.Entry) {
	i.Entry = &entry
	i.Claim, i.Volume = Reference{entry.Namespace, entry.Name}, entry.VolumeName()
	if i.Node == "" {
		i.Node = entry.Node
	}
	switch {
	case i.unresolved:
		i.State = Unresolved
	case entry.State == journal.Discarding:
		i.State = Discarding
	default:
		i.State = Requested
	}
	if unresolved := entry.Unresolved; i.unresolved && unresolved != nil {
		since := metav1.NewTime(time.Unix(unresolved.Since, 0))
		i.Reason, i.Since, i.Finish = unresolved.Reason, &since, unresolved.Finish
	}
}

// unresolved returns the entries of the claim, all of which are unresolved, or an
// error that says why they cannot be ended.
func (j *Journals) unresolved(claim types.UID) ([]Item, error) {
	var found []Item
	for _, item := range j.Items {
		if item.ClaimUID != claim {
			continue
		}
		switch {
		case !item.unresolved:
			return nil, fmt.Errorf("claim UID %s: its entry in Lease %s is not unresolved but %s: the provisioner of %s ends it by itself, so wait and look at its log", claim, item.Lease, item.State, item.Driver)
		case item.State == Unreadable:
			return nil, fmt.Errorf("claim UID %s: its entry in Lease %s is unreadable, so its volume is not known: find that out by other means, then remove the annotation %s%s with kubectl annotate", claim, item.Lease, journal.EntryPrefix, claim)
		}
		found = append(found, item)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("no journal that was read has an entry of claim UID %s: run the list command to see all entries and use a UID from there", claim)
	}
	return found, nil
}
