package runner

import (
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/rollback"
)

// handover is how long a Lease that was given up may wait for its next leader.
const handover = 30 * time.Second

// leaderLease returns the state of the leader Lease, nil if the Lease does not exist.
func leaderLease(lease *coordinationv1.Lease, now time.Time) rollback.LeaderLease {
	if lease == nil {
		return rollback.LeaseAbsent
	}
	if lease.Spec.RenewTime == nil {
		return rollback.LeaseExpired
	}
	duration := time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0)) * time.Second
	age := now.Sub(lease.Spec.RenewTime.Time)
	switch {
	case holderOf(lease) == "" && age <= handover:
		return rollback.LeaseExpired
	case holderOf(lease) == "":
		return rollback.LeaseExpiredTwice
	case age <= duration && heldByExeunt(lease):
		return rollback.LeaseExeunt
	case age <= duration:
		return rollback.LeaseOther
	case age <= 2*duration:
		return rollback.LeaseExpired
	}
	return rollback.LeaseExpiredTwice
}

func holderOf(lease *coordinationv1.Lease) string { return ptr.Deref(lease.Spec.HolderIdentity, "") }

// heldByExeunt reports whether the last holder of the Lease is a program of Exeunt.
func heldByExeunt(lease *coordinationv1.Lease) bool {
	return strings.HasSuffix(holderOf(lease), controller.IdentitySuffix)
}

// journalLease is a Lease of a journal.
type journalLease struct {
	*coordinationv1.Lease
	owner journal.Journal
	kind  journal.Kind
	// open is the number of entries.
	open int
}

// elected reports whether the writer of the Lease was an elected leader.
func (l journalLease) elected() bool {
	custody := journal.ParseCustody(l.Annotations[journal.CustodyAnnotation])
	return custody.LeaderLease != "" && custody.LeaderLease != journal.ParseCustody("").LeaderLease
}
