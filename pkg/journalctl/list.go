package journalctl

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/exeunt-io/exeunt/internal/answer"
	"github.com/exeunt-io/exeunt/internal/terminal"
	"github.com/exeunt-io/exeunt/pkg/journal"
)

// entryState is the state of an entry.
type entryState string

const (
	// stateRequested: the provisioner calls CreateVolume now or soon.
	stateRequested entryState = "requested"
	// stateDiscarding: the provisioner calls DeleteVolume for an unused volume.
	stateDiscarding entryState = "discarding"
	// stateUnresolved: only an administrator can finish or drop the entry.
	stateUnresolved entryState = "unresolved"
	// stateUnreadable: the annotation is not an entry of a known format.
	stateUnreadable entryState = "unreadable"
)

// entryItem is one entry of a journal, as the list prints it.
type entryItem struct {
	State    entryState `json:"state"`
	Driver   string     `json:"driver"`
	Node     string     `json:"node,omitempty"`
	Lease    reference  `json:"lease"`
	Claim    reference  `json:"claim"`
	ClaimUID types.UID  `json:"claimUID"`
	Volume   string     `json:"volumeName,omitempty"`
	Reason   string     `json:"reason,omitempty"`
	// Since is the time when the entry became unresolved.
	Since *metav1.Time `json:"since,omitempty"`
	// Finish: the administrator ran "finish", and no provisioner has taken over the entry yet.
	Finish bool `json:"finish,omitempty"`
	// Entry is the decoded entry, without secrets; nil if the annotation is unreadable.
	Entry *journal.Entry `json:"entry,omitempty"`

	// inUnresolvedLease: the entry is in a Lease for unresolved entries.
	inUnresolvedLease bool
	// journalNode is the node whose provisioner writes the journal, "" if one provisioner serves all
	// nodes. Node is the selected node then.
	journalNode string
	// text is the encoded entry, version the resourceVersion of the Lease.
	text, version string
}

// reference is the namespace and name of an object.
type reference struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// String returns namespace/name.
func (r reference) String() string { return r.Namespace + "/" + r.Name }

// EntryList has the entries of all journals of a cluster.
type EntryList struct {
	Items []entryItem `json:"items"`
	// Ignored are Leases that have the label of a journal without its name and owner.
	Ignored []reference `json:"ignoredLeases,omitempty"`
}

// pageSize is the number of Leases in one list request.
const pageSize = 500

// List reads the entries of all journals in the namespace, "" for all namespaces.
// Leases without the label count too: any user can remove labels. A list whose token expires is
// read again from the beginning, once.
func List(ctx context.Context, client kubernetes.Interface, namespace string) (EntryList, error) {
	found, restarted := EntryList{Items: []entryItem{}}, false
	options := metav1.ListOptions{Limit: pageSize}
	for {
		page, err := answer.CheckedList(client.CoordinationV1().Leases(namespace).List(ctx, options))
		switch {
		case apierrors.IsResourceExpired(err) && !restarted:
			found, restarted, options.Continue = EntryList{Items: []entryItem{}}, true, ""
			continue
		case err != nil:
			return EntryList{}, fmt.Errorf("list Leases: %w", err)
		}
		for i := range page.Items {
			found.add(&page.Items[i])
		}
		if options.Continue = page.Continue; options.Continue == "" {
			break
		}
	}
	slices.SortFunc(found.Items, func(a, b entryItem) int {
		return cmp.Or(cmp.Compare(a.Lease.String(), b.Lease.String()), cmp.Compare(a.ClaimUID, b.ClaimUID))
	})
	return found, nil
}

// add adds the entries of the Lease.
func (l *EntryList) add(lease *coordinationv1.Lease) {
	owner, kind, _, isJournal := journal.Find(lease)
	if !isJournal {
		if _, labeled := lease.Labels[journal.KindLabel]; labeled {
			l.Ignored = append(l.Ignored, reference{lease.Namespace, lease.Name})
		}
		return
	}
	for uid, text := range journal.Encoded(lease) {
		item := entryItem{
			State: stateUnreadable, Driver: owner.Driver, Node: owner.Node, journalNode: owner.Node,
			Lease: reference{lease.Namespace, lease.Name}, ClaimUID: uid, inUnresolvedLease: kind == journal.KindUnresolved,
			text: text, version: lease.ResourceVersion,
		}
		if entry, err := journal.Decode(uid, text); err != nil {
			item.Reason = err.Error()
		} else {
			item.setEntry(entry)
		}
		l.Items = append(l.Items, item)
	}
}

// setEntry sets the fields that are read from the decoded entry.
func (i *entryItem) setEntry(entry journal.Entry) {
	i.Entry = &entry
	i.Claim, i.Volume = reference{entry.Namespace, entry.Name}, entry.VolumeName()
	if i.Node == "" {
		i.Node = entry.Node
	}
	switch {
	case i.inUnresolvedLease:
		i.State = stateUnresolved
	case entry.State == journal.Discarding:
		i.State = stateDiscarding
	default:
		i.State = stateRequested
	}
	if unresolved := entry.Unresolved; i.inUnresolvedLease && unresolved != nil {
		since := metav1.NewTime(time.Unix(unresolved.Since, 0))
		i.Reason, i.Since, i.Finish = unresolved.Reason, &since, unresolved.Finish
	}
}

// entriesOf returns the entries of the claim. If one of these entries is not readable, the error
// tells the administrator the next step.
func (l *EntryList) entriesOf(claim types.UID) ([]entryItem, error) {
	var found []entryItem
	for _, item := range l.Items {
		if item.ClaimUID != claim {
			continue
		}
		switch {
		case item.State == stateUnreadable && !item.inUnresolvedLease:
			return nil, fmt.Errorf("claim UID %s: its entry in Lease %s is unreadable, so its volume is not known: find that out by other means, then stop the provisioner of %s, which would write the entry again, and remove the annotation %s%s with kubectl annotate", claim, item.Lease, item.Driver, journal.EntryPrefix, claim)
		case item.State == stateUnreadable:
			return nil, fmt.Errorf("claim UID %s: its entry in Lease %s is unreadable, so its volume is not known: find that out by other means, then remove the annotation %s%s with kubectl annotate", claim, item.Lease, journal.EntryPrefix, claim)
		}
		found = append(found, item)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("no journal that was read has an entry of claim UID %s: run the list command to see all entries and use a UID from there", claim)
	}
	return found, nil
}

// Print writes the list in the format: "", "json" or "yaml".
func (l *EntryList) Print(out io.Writer, format string, now time.Time) error {
	switch format {
	case "json":
		text, err := json.MarshalIndent(l, "", "  ")
		if err != nil {
			return fmt.Errorf("encode entries: %w", err)
		}
		_, err = fmt.Fprintln(out, string(terminal.EscapeJSON(text)))
		return err
	case "yaml":
		text, err := yaml.Marshal(l)
		if err != nil {
			return fmt.Errorf("encode entries: %w", err)
		}
		_, err = out.Write(text)
		return err
	}
	return l.printTable(out, now)
}

func (l *EntryList) printTable(out io.Writer, now time.Time) error {
	if len(l.Items) == 0 {
		_, err := fmt.Fprintln(out, "No journal entries found.")
		return err
	}
	table := printers.GetNewTabWriter(out)
	fmt.Fprintln(table, "STATE\tDRIVER\tNODE\tCLAIM\tCLAIM UID\tVOLUME\tAGE\tREASON")
	for _, item := range l.Items {
		state, claim, age := string(item.State), "", ""
		if item.Finish {
			state += ", to be finished"
		}
		if item.Claim.Name != "" {
			claim = item.Claim.String()
		}
		if item.Since != nil {
			age = duration.HumanDuration(now.Sub(item.Since.Time))
		}
		cells := []string{state, item.Driver, item.Node, claim, string(item.ClaimUID), item.Volume, age, item.Reason}
		for i, cell := range cells {
			if cell == "" {
				cell = "-"
			}
			if i > 0 {
				fmt.Fprint(table, "\t")
			}
			fmt.Fprintf(table, "%s", terminal.Printable(cell))
		}
		fmt.Fprintln(table)
	}
	return table.Flush()
}
