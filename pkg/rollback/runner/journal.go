package runner

import (
	"context"
	"fmt"
	"slices"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/rollback"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// decideLeases decides about the Leases of the journal, and about the leader Lease of
// pv-controller.
func (s *observation) decideLeases() {
	s.leases.unread = !s.programs.leasesSeen
	slices.SortFunc(s.programs.journals, func(a, b journalLease) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	for _, lease := range s.programs.journals {
		program := s.provisioner(lease.owner)
		decision := rollback.DecideJournal(rollback.JournalState{
			Server: program.Server(), Pods: program.Pods,
			Active: lease.open > 0 && lease.kind == journal.KindActive, Unresolved: lease.open > 0 && lease.kind == journal.KindUnresolved,
			Named: s.options.named(lease.owner.Driver),
		})
		item := s.leaseItem(lease.Lease, decision)
		item.lease, item.Note = lease.Lease, fmt.Sprintf("%s entries: %d", lease.kind, lease.open)
		s.leases.items = append(s.leases.items, item)
	}
	lease := s.programs.leases[[2]string{cluster.ControlPlane, cluster.PVControllerLease}]
	if lease == nil || !isOwnLeader(lease) {
		return
	}
	server := s.pvController().Server()
	if holderOf(lease) == standby && s.programs.hasPods("", pvControllerKind) == rollback.PodsAbsent {
		server = rollback.ServerNone // the Lease outlives the programs that it kept on standby
	}
	s.leases.items = append(s.leases.items, s.leaseItem(lease, rollback.DecideUnneeded(server)))
}

// standby is the holder in deploy/pv-controller/standby/lease.yaml.
const standby = cluster.StandbyHolder

// isOwnLeader reports whether the leader Lease of pv-controller is of no other program.
func isOwnLeader(lease *coordinationv1.Lease) bool {
	return holderOf(lease) == "" || holderOf(lease) == standby || heldByExeunt(lease)
}

// leaseItem returns the item of a Lease that is deleted only in the version that was read.
func (s *observation) leaseItem(lease *coordinationv1.Lease, decision rollback.Decision) Item {
	object := blocker.Object{Kind: "Lease", Group: coordinationv1.GroupName, Namespace: lease.Namespace, Name: lease.Name, UID: string(lease.UID)}
	return newItem(object, "", decision, func(ctx context.Context) (metav1.Object, error) {
		return nil, s.reader.Kubernetes().CoordinationV1().Leases(lease.Namespace).Delete(ctx, lease.Name, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &lease.UID, ResourceVersion: ptr.To(lease.ResourceVersion)},
		})
	})
}

// openEntries returns the number of entries of the kind in all journals of the driver.
func (p *programs) openEntries(driver string, kind journal.Kind) int {
	count := 0
	for _, lease := range p.journals {
		if lease.owner.Driver == driver && lease.kind == kind {
			count += lease.open
		}
	}
	return count
}
