package runner

import (
	"context"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/provisioner/identity"
	"github.com/exeunt-io/exeunt/pkg/rollback"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// programs is the observed state of the programs of Exeunt.
type programs struct {
	leasesSeen, podsSeen bool
	// leasesAt is when the Leases were read: a living leader has renewed its own since.
	leasesAt time.Time
	// leases are the Leases that are not of a journal, by namespace and name.
	leases   map[[2]string]*coordinationv1.Lease
	journals []journalLease
	pods     []programPod
	loops    loopSwitch
}

// readPrograms reads Leases and pods.
func (s *observation) readPrograms(ctx context.Context) {
	p := &s.programs
	leases, seen := cluster.List(ctx, s.reader, cluster.Leases, cluster.Selection{})
	p.leasesAt = cluster.ListedAt(ctx, s.reader, cluster.Leases, cluster.Selection{})
	p.leasesSeen, p.leases = seen, map[[2]string]*coordinationv1.Lease{}
	for i := range leases {
		lease := &leases[i]
		if owner, kind, _, is := journal.Find(lease); is {
			p.journals = append(p.journals, journalLease{lease, owner, kind, len(journal.Encoded(lease))})
			continue
		}
		p.leases[[2]string{lease.Namespace, lease.Name}] = lease
	}
	s.readPods(ctx)
}

// drivers returns the drivers that a provisioner of Exeunt served, as Leases show.
func (p *programs) drivers() []string {
	var all []string
	for _, lease := range p.journals {
		all = append(all, lease.owner.Driver)
	}
	leaders := map[string]bool{}
	for _, driver := range all {
		leaders[identity.LeaseName(driver)] = true
	}
	for key, lease := range p.leases {
		if heldByExeunt(lease) && !leaders[key[1]] && !cluster.IsControlPlaneLease(key[1]) {
			all = append(all, key[1])
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// hasPods returns whether pods run the program with Leases in the namespace, "" for any.
func (p *programs) hasPods(namespace string, kind programKind) rollback.Pods {
	for _, pod := range p.pods {
		inScope := namespace == "" || pod.namespace == namespace || pod.election == namespace || pod.election == anyNamespace
		if pod.kind == kind && inScope {
			return rollback.PodsPresent
		}
	}
	if !p.podsSeen {
		return rollback.PodsUnseen
	}
	return rollback.PodsAbsent
}

// lease returns the state of a leader Lease. Of Leases that were listed in part only a leader
// of Exeunt is certain: another namespace may have a second Lease, or the journal.
func (s *observation) lease(namespace, name string) rollback.LeaderLease {
	lease := s.programs.leases[[2]string{namespace, name}]
	state := leaderLease(lease, s.programs.leasesAt)
	switch {
	case state == rollback.LeaseExeunt, state == rollback.LeaseOther && s.programs.isHeldByPod(lease):
		return rollback.LeaseExeunt
	case !s.programs.leasesSeen:
		return rollback.LeaseUnseen
	}
	return state
}

// isHeldByPod reports whether the holder of the Lease is a pod that runs a program of Exeunt.
// Earlier versions had no suffix of their own.
func (p *programs) isHeldByPod(lease *coordinationv1.Lease) bool {
	host, _, _ := strings.Cut(holderOf(lease), "_")
	return slices.ContainsFunc(p.pods,
		func(pod programPod) bool { return pod.namespace == lease.Namespace && pod.name == host })
}

// provisioner returns the observed state of the provisioner of a journal.
func (s *observation) provisioner(owner journal.Journal) rollback.ProgramState {
	return rollback.ProgramState{
		Lease:   s.lease(owner.Namespace, identity.LeaseName(owner.Driver)),
		Pods:    s.programs.hasPods(owner.Namespace, provisionerKind),
		Elected: s.programs.elected(owner),
		Named:   s.options.named(owner.Driver),
	}
}

// elected reports whether the last provisioner of the journal was an elected leader. A process
// that starts writes all active Leases; those with unresolved entries may be older.
func (p *programs) elected(owner journal.Journal) bool {
	elected := map[journal.Kind]bool{}
	for _, lease := range p.journals {
		if before, has := elected[lease.kind]; lease.owner == owner {
			elected[lease.kind] = lease.elected() && (!has || before)
		}
	}
	if active, has := elected[journal.KindActive]; has {
		return active
	}
	unresolved, has := elected[journal.KindUnresolved]
	return unresolved || !has
}

// states returns the observed state of each provisioner of the driver: one per journal, and one
// per leader Lease with the name for the driver in a namespace without its journal.
func (s *observation) states(driver string) []rollback.ProgramState {
	var all []rollback.ProgramState
	namespaces := map[string]bool{}
	for _, lease := range s.programs.journals {
		if lease.owner.Driver == driver {
			all = append(all, s.provisioner(lease.owner))
			namespaces[lease.owner.Namespace] = true
		}
	}
	for key := range s.programs.leases {
		if isLeaderOf(key[1], driver) && !namespaces[key[0]] {
			all = append(all, s.provisioner(journal.Journal{Namespace: key[0], Driver: driver}))
		}
	}
	if len(all) > 0 {
		return all
	}
	state := rollback.ProgramState{Lease: rollback.LeaseAbsent, Pods: s.programs.hasPods("", provisionerKind),
		Elected: true, Named: s.options.named(driver)}
	if !s.programs.leasesSeen {
		state.Lease = rollback.LeaseUnseen
	}
	return []rollback.ProgramState{state}
}

// isLeaderOf reports whether a leader Lease of the name belongs to a provisioner of the driver.
func isLeaderOf(name, driver string) bool {
	return name == identity.LeaseName(driver) && !cluster.IsControlPlaneLease(name)
}

// server returns which provisioner serves the driver. Of several the most cautious counts.
func (s *observation) server(driver string) rollback.Server {
	server := rollback.ServerUpstream
	for _, state := range s.states(driver) {
		server = mostCautious(server, state.Server())
	}
	return server
}

// serverOnce returns which provisioner serves the driver, "" for a driver that is not known. It
// is computed once: with a journal per node each answer takes long. All programs must be read.
func (s *observation) serverOnce(driver string) rollback.Server {
	return cluster.Remember(s.reader, "server of "+driver, func(*cluster.Reader) rollback.Server {
		if driver == "" {
			return s.anyServer()
		}
		return s.server(driver)
	})
}

// mostCautious returns the first of the servers in the order: Exeunt, unseen, none, upstream.
func mostCautious(a, b rollback.Server) rollback.Server {
	for _, first := range []rollback.Server{rollback.ServerExeunt, rollback.ServerUnseen, rollback.ServerNone} {
		if a == first || b == first {
			return first
		}
	}
	return rollback.ServerUpstream
}

// anyServer returns the most cautious server of all drivers.
func (s *observation) anyServer() rollback.Server {
	drivers := s.programs.drivers()
	if len(drivers) == 0 {
		drivers = slices.DeleteFunc(slices.Clone(s.options.Stopped), func(name string) bool { return name == PVController })
	}
	if len(drivers) == 0 {
		return s.server("")
	}
	server := rollback.ServerUpstream
	for _, driver := range drivers {
		server = mostCautious(server, s.server(driver))
	}
	return server
}

// pvController returns the observed state of pv-controller.
func (s *observation) pvController() rollback.ProgramState {
	return rollback.ProgramState{
		Lease: s.lease(cluster.ControlPlane, cluster.PVControllerLease), Pods: s.programs.hasPods("", pvControllerKind),
		Elected: true, Named: s.options.named(PVController),
	}
}

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
