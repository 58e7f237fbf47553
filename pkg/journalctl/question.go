package journalctl

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// question is an entry that the command ends only after the administrator has agreed.
type question struct {
	item entryItem
	live liveObjects
}

// loss returns what the command may lose, as sentences.
func (q question) loss(c command) string {
	item, policy := q.item, policyOf(q.item.Entry)
	if c == drop {
		text := fmt.Sprintf("A volume may be left behind: look for %s in the storage system of %s%s.", item.Volume,
			item.Driver, item.handleSuffix())
		if !item.inUnresolvedLease {
			text = fmt.Sprintf("Node %s does not exist. If it never comes back, no provisioner ends the entry. ",
				item.journalNode) + text
		}
		return text
	}
	end := fmt.Sprintf("Volume %s is found or created and then deleted with its data, because its claim %s and its class says %s.",
		item.Volume, q.live.claimStatus(), cmp.Or(string(policy), "no policy"))
	if policy == v1.PersistentVolumeReclaimRetain {
		end = fmt.Sprintf("Volume %s is found or created and recorded with policy Retain, but its claim %s: if the driver's answer does not fit the request, the provisioner deletes the volume with its data.",
			item.Volume, q.live.claimStatus())
	}
	return end + " If someone may have kept the volume, drop the entry and record the disk in a PersistentVolume."
}

// ask asks the administrator before a volume may be left behind (drop) or deleted (finish).
func (r Resolver) ask(ctx context.Context, c command, questions []question) error {
	if len(questions) == 0 {
		return nil
	}
	names := make([]string, len(questions))
	for i, q := range questions {
		names[i] = q.item.Volume
		r.print("%s", q.loss(c))
	}
	verb := "Remove"
	switch {
	case r.Yes:
		return nil
	case c == finish && r.In == nil: // a script that names the entry has decided
		r.print("There is no terminal to ask, so the entry is finished all the same.")
		return nil
	case c == finish:
		verb = "Finish"
	case r.In == nil:
		return fmt.Errorf("nothing was changed: there is no terminal to ask, and without its entry nobody knows of volume %s any more; use --yes to remove it all the same", strings.Join(names, ", "))
	}
	fmt.Fprintf(r.Out, "%s the entry all the same? [y/N] ", verb)
	answer, err := r.readAnswer(ctx)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if answer = strings.ToLower(strings.TrimSpace(answer)); err == nil && (answer == "y" || answer == "yes") {
		return nil
	}
	return errors.New("nothing was changed: the answer was not y")
}

// readAnswer reads a line, unless the context ends before: no context ends the read of a terminal.
func (r Resolver) readAnswer(ctx context.Context) (string, error) {
	type line struct {
		text string
		err  error
	}
	lines := make(chan line, 1)
	go func() {
		text, err := bufio.NewReader(r.In).ReadString('\n')
		lines <- line{text, err}
	}()
	select {
	case answer := <-lines:
		return answer.text, answer.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// handleSuffix returns ", handle X" for a question, "" for an entry without a handle.
func (i entryItem) handleSuffix() string {
	if i.Entry.Handle == "" {
		return ""
	}
	return fmt.Sprintf(", handle %s", i.Entry.Handle)
}
