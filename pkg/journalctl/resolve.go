package journalctl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/exeunt-io/exeunt/internal/answer"
	"github.com/exeunt-io/exeunt/internal/terminal"
	"github.com/exeunt-io/exeunt/pkg/journal"
)

// Resolver finishes or drops unresolved entries, and drops those of nodes that are gone.
type Resolver struct {
	Client kubernetes.Interface
	// Namespace is the namespace of the Leases, "" for all namespaces.
	Namespace string
	Out       io.Writer
	// In is the terminal that answers questions, nil if there is none.
	In io.Reader
	// Yes answers all questions with yes.
	Yes bool
	// Timeout bounds the time that Finish waits for the provisioner.
	Timeout time.Duration
}

// Finish requests in each Lease that the provisioner finishes the entry, and waits until
// the provisioners have taken over the entries. If one entry is refused, no Lease changes.
func (r Resolver) Finish(ctx context.Context, claims []types.UID) error {
	items, err := r.check(ctx, finish, claims)
	if err != nil {
		return err
	}
	for i := range items {
		item := &items[i]
		if err := r.requestFinish(ctx, item); err != nil {
			return err
		}
		r.print("The entry of claim UID %s will be finished: the provisioner of %s repeats the request for volume %s.",
			item.ClaimUID, item.Driver, item.Volume)
	}
	ctx, stop := context.WithTimeout(ctx, r.Timeout)
	defer stop()
	var errs []error
	for _, item := range items {
		errs = append(errs, r.await(ctx, item))
	}
	return errors.Join(errs...)
}

// Drop removes the entries of the claims. If one entry is refused, no Lease changes.
func (r Resolver) Drop(ctx context.Context, claims []types.UID) error {
	items, err := r.check(ctx, drop, claims)
	if err != nil {
		return err
	}
	for _, item := range items {
		if err := r.patch(ctx, &item, map[string]any{"op": "remove", "path": item.annotationPath()}); err != nil {
			return err
		}
		r.print("The entry of claim UID %s is removed from Lease %s.", item.ClaimUID, item.Lease)
	}
	return nil
}

// check returns the entries of the claims if the command is allowed on all of them.
func (r Resolver) check(ctx context.Context, c command, claims []types.UID) ([]entryItem, error) {
	found, err := List(ctx, r.Client, r.Namespace)
	if err != nil {
		return nil, err
	}
	var all []entryItem
	var checked, unconfirmed []question
	for i, claim := range claims {
		if slices.Contains(claims[:i], claim) {
			continue
		}
		items, err := found.entriesOf(claim)
		if err != nil {
			return nil, err
		}
		for _, item := range items {
			result, live, err := r.checkEntry(ctx, c, item)
			if err != nil {
				return nil, err
			}
			r.print("%s.", capitalized(live.describe(item)))
			checked = append(checked, question{item, live})
			if result == confirm {
				unconfirmed = append(unconfirmed, question{item, live})
			}
			all = append(all, item)
		}
	}
	if err := r.ask(ctx, c, unconfirmed); err != nil || len(unconfirmed) == 0 {
		return all, err
	}
	return all, r.checkAgain(ctx, c, checked)
}

// checkAgain returns an error if a claim, volume or node has changed while the question was open.
func (r Resolver) checkAgain(ctx context.Context, c command, checked []question) error {
	for _, before := range checked {
		_, live, err := r.checkEntry(ctx, c, before.item)
		if err != nil {
			return err
		}
		if live != before.live {
			return fmt.Errorf("nothing was changed, because meanwhile %s: run the command again", live.describe(before.item))
		}
	}
	return nil
}

// checkEntry checks the command on one entry. Its error is the refusal.
func (r Resolver) checkEntry(ctx context.Context, c command, item entryItem) (verdict, liveObjects, error) {
	if !item.inUnresolvedLease {
		if err := r.checkActive(ctx, c, item); err != nil {
			return refuse, liveObjects{}, err
		}
	}
	if c == finish && item.Entry != nil && item.Entry.State == journal.Discarding && item.Entry.Request.IsShortened() {
		return refuse, liveObjects{}, shortened(item)
	}
	live, err := readLive(ctx, r.Client, item)
	if err != nil {
		return refuse, liveObjects{}, err
	}
	result := decide(c, live.bound, mayDelete(live, item.Entry), live.volume)
	switch {
	case result == refuse:
		return refuse, live, fmt.Errorf("%s: there is nothing to finish, so nothing was changed; drop the entry in Lease %s instead", live.describe(item), item.Lease)
	case !item.inUnresolvedLease: // a node that comes back would end the entry
		return confirm, live, nil
	}
	return result, live, nil
}

// shortened is the refusal to finish an entry without a request, which would delete the volume.
func shortened(item entryItem) error {
	return fmt.Errorf("claim UID %s: its entry in Lease %s has no request that could be repeated, only the volume %s that was being discarded: finishing it would delete a volume that a user may have kept; look for %s in storage, delete it there if it is not needed, and drop the entry",
		item.ClaimUID, item.Lease, item.Volume, item.Volume)
}

// print prints a line without control characters: a Lease must not control the terminal.
func (r Resolver) print(format string, values ...any) {
	fmt.Fprintln(r.Out, terminal.Printable(fmt.Sprintf(format, values...)))
}

func capitalized(sentence string) string { return strings.ToUpper(sentence[:1]) + sentence[1:] }

// annotationPath is the path of the entry's annotation in a JSON patch.
func (i entryItem) annotationPath() string {
	return "/metadata/annotations/" + strings.NewReplacer("~", "~0", "/", "~1").
		Replace(journal.EntryPrefix+string(i.ClaimUID))
}

// requestFinish sets Unresolved.Finish in the entry, for the provisioner.
func (r Resolver) requestFinish(ctx context.Context, item *entryItem) error {
	if item.Finish {
		return nil
	}
	entry := *item.Entry
	unresolved := journal.Unresolved{Since: time.Now().Unix()}
	if entry.Unresolved != nil {
		unresolved = *entry.Unresolved
	}
	unresolved.Finish = true
	entry.Unresolved = &unresolved
	text, err := journal.Encode(entry)
	if err != nil {
		return err
	}
	return r.patch(ctx, item, map[string]any{"op": "replace", "path": item.annotationPath(), "value": text})
}

// patch changes the Lease, unless the entry has changed since the list was read, and sets the
// version of the item.
func (r Resolver) patch(ctx context.Context, item *entryItem, change map[string]any) error {
	body, err := json.Marshal([]map[string]any{{"op": "test", "path": item.annotationPath(), "value": item.text}, change})
	if err != nil {
		return fmt.Errorf("encode patch: %w", err)
	}
	var patched *coordinationv1.Lease
	patched, err = r.Client.CoordinationV1().Leases(item.Lease.Namespace).
		Patch(ctx, item.Lease.Name, types.JSONPatchType, body, metav1.PatchOptions{})
	switch {
	case answer.NeedsRead(err) && r.hasChanged(ctx, item):
		return fmt.Errorf("the entry of claim UID %s in Lease %s has changed meanwhile and was left as it is: list the entries and try again", item.ClaimUID, item.Lease)
	case err != nil:
		return fmt.Errorf("change the entry of claim UID %s in Lease %s: %w", item.ClaimUID, item.Lease, err)
	case patched == nil:
		return fmt.Errorf("change the entry of claim UID %s in Lease %s: empty answer", item.ClaimUID, item.Lease)
	}
	item.version = patched.ResourceVersion
	return nil
}

// hasChanged reports whether a read shows that the entry has changed: an admission webhook denies writes with codes of its
// choice.
func (r Resolver) hasChanged(ctx context.Context, item *entryItem) bool {
	lease, exists, err := answer.Get(ctx, item.Lease.Name, r.Client.CoordinationV1().Leases(item.Lease.Namespace).Get)
	return err == nil && (!exists || journal.Encoded(lease)[item.ClaimUID] != item.text)
}

// checkActive returns why the command must not end an entry that the provisioner works on. Only the
// entry of a node that does not exist can be dropped: no provisioner of another node ends it.
func (r Resolver) checkActive(ctx context.Context, c command, item entryItem) error {
	works := fmt.Errorf("claim UID %s: its entry in Lease %s is not unresolved but %s: the provisioner of %s ends it by itself, so wait and look at its log", item.ClaimUID, item.Lease, item.State, item.Driver)
	if item.journalNode == "" {
		return works
	}
	switch _, exists, err := answer.Get(ctx, item.journalNode, r.Client.CoreV1().Nodes().Get); {
	case exists:
		return fmt.Errorf("%w; once Node %s is removed for good, drop ends the entry", works, item.journalNode)
	case err != nil:
		return fmt.Errorf("claim UID %s: its entry in Lease %s is not unresolved but %s, and can be dropped only if its node is gone: read Node %s, nothing was changed: %w", item.ClaimUID, item.Lease, item.State, item.journalNode, err)
	case c == finish:
		return fmt.Errorf("claim UID %s: its entry in Lease %s is of Node %s, which does not exist, so no provisioner can finish the entry; if the node never comes back, drop the entry instead", item.ClaimUID, item.Lease, item.journalNode)
	}
	return nil
}
