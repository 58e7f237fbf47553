package journalctl

import (
	"context"
	"fmt"

	"github.com/exeunt-io/exeunt/internal/answer"
)

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
