package storage

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/blocker/volume"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/why/chain"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/families"
	"github.com/exeunt-io/exeunt/pkg/why/holder"
)

// entry is an entry of a provisioning journal, as far as texts need it.
type entry struct {
	lease      string // namespace/name
	unresolved bool
	reason     string
}

// journalOf returns the entries of all journals for the claim.
func journalOf(ctx context.Context, e chain.Explorer, claim *corev1.ObjectReference) ([]entry, volume.Journal) {
	if claim == nil || claim.UID == "" {
		return nil, volume.JournalEmpty
	}
	leases, seen := cluster.List(ctx, e.Reader(), cluster.Leases, cluster.Selection{})
	var found []entry
	state := volume.JournalEmpty
	for i := range leases {
		_, kind, _, isJournal := journal.Find(&leases[i])
		text, has := journal.Encoded(&leases[i])[claim.UID]
		if !isJournal || !has {
			continue
		}
		one := entry{lease: leases[i].Namespace + "/" + leases[i].Name, unresolved: kind == journal.KindUnresolved}
		if decoded, err := journal.Decode(claim.UID, text); err == nil && decoded.Unresolved != nil {
			one.reason = decoded.Unresolved.Reason
			one.unresolved = one.unresolved && !decoded.Unresolved.Finish
		}
		found = append(found, one)
		state = max(state, kindState(one.unresolved))
	}
	if len(found) == 0 && !seen {
		return nil, volume.JournalUnseen
	}
	return found, state
}

func kindState(unresolved bool) volume.Journal {
	if unresolved {
		return volume.JournalUnresolved
	}
	return volume.JournalOpen
}

// serverOf returns who provisions for the driver: the provisioner of Exeunt or another.
func serverOf(ctx context.Context, e chain.Explorer, finding holder.Finding,
	driver string) (volume.Server, []blocker.Evidence) {
	leases, _ := cluster.List(ctx, e.Reader(), cluster.Leases, cluster.Selection{})
	now := cluster.ListedAt(ctx, e.Reader(), cluster.Leases, cluster.Selection{})
	leader := volume.LeaderUnseen
	var facts []blocker.Evidence
	for i := range leases {
		lease := &leases[i]
		if !strings.EqualFold(lease.Name, families.SanitizedDriver(driver)) ||
			blocker.JudgeLease(lease, now) != blocker.LeaseHeld {
			continue
		}
		if name := "Lease " + lease.Namespace + "/" + lease.Name; !hasEvidenceOf(finding, name) {
			facts = append(facts, evidence(blocker.FromLease, "%s: held by %q", name, blocker.LeaseHolder(lease)))
		}
		if strings.HasSuffix(blocker.LeaseHolder(lease), controller.IdentitySuffix) {
			leader = volume.LeaderOurs
		} else if leader == volume.LeaderUnseen {
			leader = volume.LeaderOther
		}
	}
	all := programs(finding, func(container holder.Container) bool { // one of Exeunt may serve any driver, as long as nothing tells
		ours := volume.Program{Image: container.Image, Args: container.Args}.IsOurs()
		return container.Serves || ours && !container.Guessed
	})
	return volume.ServerOf(finding.State, leader, all), facts
}

// hasEvidenceOf reports whether the evidence of the finding begins with the name.
func hasEvidenceOf(finding holder.Finding, name string) bool {
	return slices.ContainsFunc(finding.Evidence,
		func(e blocker.Evidence) bool { return strings.HasPrefix(e.Text, name+": ") })
}
