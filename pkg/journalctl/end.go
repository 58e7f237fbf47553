package journalctl

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/exeunt-io/exeunt/pkg/journal"
)

// Ending ends unresolved entries.
type Ending struct {
	Client kubernetes.Interface
	// Namespace is where Leases are looked for, "" for all namespaces.
	Namespace string
	Out       io.Writer
	// In is the terminal that answers questions, nil if there is none.
	In io.Reader
	// Yes answers all questions.
	Yes bool
	// Timeout is how long Finish waits for the provisioner.
	Timeout time.Duration
}

// Finish marks the entries of the claims to be finished, and waits until their
// provisioners have taken them. Nothing is changed unless all may be finished.
func (e Ending) Finish(ctx context.Context, claims []types.UID) error {
	items, err := e.check(ctx, Finish, claims)
	if err != nil {
		return err
	}
	for _, item := range items {
		if err := e.mark(ctx, item); err != nil {
			return err
		}
		e.say("The entry of claim UID %s is marked: the provisioner of %s repeats the request for volume %s.", item.ClaimUID, item.Driver, item.Volume)
	}
	ctx, stop := context.WithTimeout(ctx, e.Timeout)
	defer stop()
	var errs []error
	for _, item := range items {
		errs = append(errs, e.await(ctx, item))
	}
	return errors.Join(errs...)
}

// Drop removes the entries of the claims. Nothing is changed unless all may be removed.
func (e Ending) Drop(ctx context.Context, claims []types.UID) error {
	items, err := e.check(ctx, Drop, claims)
	if err != nil {
		return err
	}
	for _, item := range items {
		if err := e.patch(ctx, item, map[string]any{"op": "remove", "path": item.path()}); err != nil {
			return err
		}
		e.say("The entry of claim UID %s is removed from Lease %s.", item.ClaimUID, item.Lease)
	}
	return nil
}

// check returns the entries of the claims if the action may be carried out on all.
func (e Ending) check(ctx context.Context, action Action, claims []types.UID) ([]Item, error) {
	found, err := List(ctx, e.Client, e.Namespace)
	if err != nil {
		return nil, err
	}
	var all, doubtful []Item
	for _, claim := range claims {
		items, err := found.unresolved(claim)
		if err != nil {
			return nil, err
		}
		for _, item := range items {
			seen, err := look(ctx, e.Client, item)
			if err != nil {
				return nil, err
			}
			verdict := Decide(action, seen.bound, seen.volume)
			if verdict == Refuse {
				return nil, fmt.Errorf("%s: there is nothing to finish, so nothing was changed; drop the entry in Lease %s instead", seen.describe(item), item.Lease)
			}
			e.say("%s.", capital(seen.describe(item)))
			if verdict == Confirm {
				doubtful = append(doubtful, item)
			}
			all = append(all, item)
		}
	}
	return all, e.confirm(doubtful)
}

// say prints a line without control characters: a Lease must not control the terminal.
func (e Ending) say(format string, values ...any) {
	fmt.Fprintln(e.Out, printable(fmt.Sprintf(format, values...)))
}

func capital(sentence string) string { return strings.ToUpper(sentence[:1]) + sentence[1:] }

// confirm asks whether entries may be removed whose volumes may exist.
func (e Ending) confirm(items []Item) error {
	if len(items) == 0 {
		return nil
	}
	names := make([]string, len(items))
	for i, item := range items {
		names[i] = item.Volume
		e.say("A volume may be left behind: look for %s in the storage system of %s%s.", item.Volume, item.Driver, item.handle())
	}
	switch {
	case e.Yes:
		return nil
	case e.In == nil:
		return fmt.Errorf("nothing was changed: there is no terminal to ask, and without its entry nobody knows of volume %s any more; use --yes to remove it all the same", strings.Join(names, ", "))
	}
	fmt.Fprint(e.Out, "Remove the entry all the same? [y/N] ")
	answer, err := bufio.NewReader(e.In).ReadString('\n')
	if answer = strings.ToLower(strings.TrimSpace(answer)); err == nil && (answer == "y" || answer == "yes") {
		return nil
	}
	return errors.New("nothing was changed: the answer was not y")
}

func (i Item) handle() string {
	if i.Entry.Handle == "" {
		return ""
	}
	return fmt.Sprintf(", handle %s", i.Entry.Handle)
}

// path is that of the entry's annotation in a JSON patch.
func (i Item) path() string {
	return "/metadata/annotations/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(journal.EntryPrefix+string(i.ClaimUID))
}

// mark sets Unresolved.Finish, unless it is set.
func (e Ending) mark(ctx context.Context, item Item) error {
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
	return e.patch(ctx, item, map[string]any{"op": "replace", "path": item.path(), "value": text})
}

// patch changes the Lease of the entry if the entry is still as it was read.
func (e Ending) patch(ctx context.Context, item Item, change map[string]any) error {
	body, err := json.Marshal([]map[string]any{{"op": "test", "path": item.path(), "value": item.text}, change})
	if err != nil {
		return fmt.Errorf("encode patch: %w", err)
	}
	var patched *coordinationv1.Lease
	patched, err = e.Client.CoordinationV1().Leases(item.Lease.Namespace).Patch(ctx, item.Lease.Name, types.JSONPatchType, body, metav1.PatchOptions{})
	switch {
	case apierrors.IsInvalid(err) || apierrors.IsNotFound(err):
		return fmt.Errorf("the entry of claim UID %s in Lease %s has changed meanwhile and was left as it is: list the entries and try again", item.ClaimUID, item.Lease)
	case err != nil:
		return fmt.Errorf("change the entry of claim UID %s in Lease %s: %w", item.ClaimUID, item.Lease, err)
	case patched == nil:
		return fmt.Errorf("change the entry of claim UID %s in Lease %s: empty answer", item.ClaimUID, item.Lease)
	}
	return nil
}
