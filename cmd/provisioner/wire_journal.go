package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/pflag"

	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/provisioner/identity"
	store "github.com/exeunt-io/exeunt/pkg/provisioner/journal"
)

// journalOptions are the flags of the journal.
type journalOptions struct {
	unresolvedAfter time.Duration
}

func (o *journalOptions) addFlags(flags *pflag.FlagSet) {
	flags.DurationVar(&o.unresolvedAfter, "journal-unresolved-after", o.unresolvedAfter,
		"how long CreateVolume is repeated for a deleted claim whose outcome only an administrator can determine; then exeunt journal list shows the journal entry")
}

func (o *journalOptions) check() error {
	if o.unresolvedAfter <= 0 {
		return errors.New("--journal-unresolved-after must be longer than 0")
	}
	return nil
}

// journal configures the journal of the driver, or of the driver on this node.
func (w *wiring) journal(ctx context.Context) (store.Config, error) {
	client, err := w.clients.For("journal")
	if err != nil {
		return store.Config{}, err
	}
	namespace, err := identity.JournalNamespace(ctx, w.clients.Objects, w.options.election.enabled, w.options.election.namespace)
	if err != nil {
		return store.Config{}, err
	}
	return store.Config{
		Client:   client,
		Journal:  journal.Journal{Namespace: namespace, Driver: w.driver.Name(), Node: w.options.node.name()},
		Off:      !w.options.Gates()[string(journalGate)],
		Recorder: w.recorder, Metrics: w.journalMetrics,
	}, nil
}
