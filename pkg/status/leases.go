package status

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/provisioner/identity"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// readLeases reads all Leases, and the entries of the journals.
func (s *survey) readLeases(ctx context.Context) {
	s.leases, _ = cluster.List(ctx, s.Reader, cluster.Leases, cluster.Selection{})
	s.leasesAt = cluster.ListedAt(ctx, s.Reader, cluster.Leases, cluster.Selection{})
	for i := range s.leases {
		owner, kind, _, is := journal.Find(&s.leases[i])
		if !is {
			continue
		}
		found := s.journals[owner]
		if found == nil {
			found = &Journal{Namespace: owner.Namespace, Driver: owner.Driver, Node: owner.Node, Entries: []Entry{}}
			s.journals[owner] = found
		}
		s.addEntries(found, &s.leases[i], kind)
	}
	s.report.Journals = []Journal{}
	owners := slices.SortedFunc(maps.Keys(s.journals), func(a, b journal.Journal) int {
		return cmp.Or(cmp.Compare(a.Driver, b.Driver), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Node, b.Node))
	})
	for _, owner := range owners {
		found := s.journals[owner]
		s.report.Journals = append(s.report.Journals, *found)
		if found.Unresolved > 0 {
			s.report.find("%s: unresolved journal entries: %d. End them by exeunt journal drop, or by finish, which deletes a volume with its data if its claim is gone and its class says Delete", found.Driver, found.Unresolved)
		}
	}
}

// addEntries adds the entries of a Lease. Only unresolved entries record a time.
func (s *survey) addEntries(found *Journal, lease *coordinationv1.Lease, kind journal.Kind) {
	entries, broken := journal.Entries(lease)
	for _, entry := range entries {
		shown := Entry{ClaimUID: string(entry.UID), Claim: entry.Namespace + "/" + entry.Name, Volume: entry.VolumeName(),
			State: "open"}
		if kind == journal.KindUnresolved {
			shown.State = "unresolved"
		}
		if entry.Unresolved != nil {
			since := time.Unix(entry.Unresolved.Since, 0)
			shown.Since, shown.AgeSeconds = blocker.Time(since), int64(s.Reader.Now().Sub(since)/time.Second)
		}
		found.Entries = append(found.Entries, shown)
	}
	for _, uid := range broken {
		found.Entries = append(found.Entries, Entry{ClaimUID: string(uid), State: "unreadable"})
	}
	if count := len(entries) + len(broken); kind == journal.KindUnresolved {
		found.Unresolved += count
	} else {
		found.Open += count
	}
}

// addLeases adds the leader Leases of the loops, of garbage-collector and of the drivers.
func (s *survey) addLeases() {
	wanted := map[string]bool{}
	for _, driver := range s.report.Drivers {
		wanted[identity.LeaseName(driver.Name)] = true
	}
	s.report.Leases = []Lease{}
	for i := range s.leases {
		lease := &s.leases[i]
		ofControlPlane := lease.Namespace == cluster.ControlPlane && cluster.IsControlPlaneLease(lease.Name)
		if !ofControlPlane && !wanted[lease.Name] {
			continue
		}
		shown := Lease{Namespace: lease.Namespace, Name: lease.Name, Holder: holderOf(lease), Program: lease.Name,
			State: leaseState(lease, s.leasesAt)}
		if !ofControlPlane {
			shown.Program = programOf(lease)
		}
		if renewed := blocker.LeaseRenewed(lease); !renewed.IsZero() {
			shown.AgeSeconds = int64(s.leasesAt.Sub(renewed) / time.Second)
		}
		s.report.Leases = append(s.report.Leases, shown)
	}
}

// leaseState returns the state of a leader Lease by the clock of the API server.
func leaseState(lease *coordinationv1.Lease, now time.Time) string {
	if holderOf(lease) == "" {
		return "released"
	}
	return blocker.JudgeLease(lease, now).String()
}
