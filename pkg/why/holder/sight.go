package holder

import (
	"context"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/families"
)

// sighting is the observed state of one controller.
type sighting struct {
	controller families.Controller
	driver     string
	now        time.Time

	programs []program // that run the controller
	off      []program // that could, and have its loop switched off
	seen     bool      // all workloads and pods were listed
	guessed  bool      // nothing tells whether the programs serve the driver

	state       blocker.Workload
	leaseState  blocker.LeaseState
	lease       *coordinationv1.Lease // the freshest one, or nil
	leftLease   *coordinationv1.Lease // left by a program that had elections, or nil
	standby     *coordinationv1.Lease // keeps all replicas waiting until a user deletes it, or nil
	uninstalled string                // what proves that the controller is not installed, or ""
}

// sight looks for the controller's workloads, pods and Leases.
func (f Finder) sight(ctx context.Context, controller families.Controller, driver string) sighting {
	leases, leasesSeen := f.leases(ctx, controller)
	s := sighting{controller: controller, driver: driver, now: cluster.ListedAt(ctx, f.Reader, cluster.Leases,
		cluster.Selection{})}
	candidates, maybes := f.candidates(ctx, &s, leases)
	if leasesSeen && len(candidates) == 0 && f.isOnlyProgram(ctx, &s, maybes, leases) {
		maybes[0].serves = true
		candidates, maybes = maybes, nil
	}
	s.classify(ctx, f.Reader, candidates)
	s.findLease(leases, leasesSeen)
	s.addMaybes(ctx, f.Reader, maybes)
	absent := s.state == blocker.WorkloadAbsent || !controller.IsRecognizable()
	if absent && s.leaseState == blocker.LeaseAbsent {
		s.uninstalled = f.missingNeed(ctx, controller)
	}
	if s.uninstalled != "" { // also a controller whose workload is not recognizable
		s.state = blocker.WorkloadAbsent
	}
	return s
}

// leases returns the Leases that may be the controller's, whatever their names.
func (f Finder) leases(ctx context.Context, controller families.Controller) ([]coordinationv1.Lease, bool) {
	leases, seen := cluster.List(ctx, f.Reader, cluster.Leases, cluster.Selection{})
	return slices.DeleteFunc(slices.Clone(leases), func(lease coordinationv1.Lease) bool {
		return lease.Namespace == corev1.NamespaceNodeLease || !isInScope(controller, lease.Namespace)
	}), seen
}

// isInScope reports whether the namespace may have the controller. Control planes of other
// clusters run in namespaces of their own.
func isInScope(controller families.Controller, namespace string) bool {
	return !controller.ControlPlane || namespace == metav1.NamespaceSystem ||
		slices.Contains(controller.Namespaces, namespace)
}

// candidates returns the programs of the controller; and, beside a driver, those of which
// nothing tells the driver, if others are known to serve it.
func (f Finder) candidates(ctx context.Context, s *sighting, leases []coordinationv1.Lease) (chosen, maybes []program) {
	if !s.controller.IsRecognizable() {
		return nil, nil
	}
	workloads, seen := listWorkloads(ctx, f.Reader)
	s.seen = seen
	fitting := fittingPrograms(s.controller, workloads)
	chosen, maybes = f.narrow(ctx, s, fitting, leases)
	if !s.controller.ControlPlane && slices.ContainsFunc(chosen,
		func(p program) bool { return p.ready > 0 && p.wanted > 0 }) {
		return chosen, maybes
	}
	pods, seen := f.pods(ctx, s.controller)
	s.seen = s.seen && seen
	fitting = append(fitting, lonePrograms(s.controller, fitting, pods)...)
	return f.narrow(ctx, s, fitting, leases)
}

// pods returns the pods that run a controller, of all namespaces, or of the one that a control plane has.
func (f Finder) pods(ctx context.Context, controller families.Controller) ([]corev1.Pod, bool) {
	var selection cluster.Selection
	if controller.ControlPlane {
		selection.Namespace = metav1.NamespaceSystem
	}
	p := &programs{families.Recognizable(), map[string]bool{}}
	return cluster.Search(ctx, f.Reader, cluster.Pods, selection, "programs", p.runs)
}

// fittingPrograms returns the workloads that have containers of the controller.
func fittingPrograms(controller families.Controller, workloads []workload) []program {
	var fitting []program
	for _, w := range workloads {
		if containers := fittingContainers(controller, w); len(containers) > 0 && isInScope(controller, w.namespace) {
			fitting = append(fitting, program{workload: w, containers: containers})
		}
	}
	return fitting
}

// lonePrograms returns the pods that run the controller and belong to none of the programs.
func lonePrograms(controller families.Controller, programs []program, pods []corev1.Pod) []program {
	var lone []workload
	for i := range pods {
		if !hasEnded(pods[i]) {
			lone = append(lone, ofPod(&pods[i]))
		}
	}
	return slices.DeleteFunc(fittingPrograms(controller, lone), func(p program) bool {
		return slices.ContainsFunc(programs, func(owner program) bool { return owner.owns(p.pod) })
	})
}

// narrow drops the programs that serve another driver, or that have the controller's loop
// switched off. Where the driver has a Lease, a program of which nothing tells the driver
// counts only in the namespace of that Lease, and one beside the Lease of another driver not.
func (f Finder) narrow(ctx context.Context, s *sighting, fitting []program,
	leases []coordinationv1.Lease) (chosen, maybes []program) {
	s.off = nil
	if s.driver == "" || len(fitting) == 0 {
		for _, p := range fitting {
			if hasLoopOff(s.controller, p) {
				s.off = append(s.off, p)
				continue
			}
			chosen = append(chosen, p)
		}
		return chosen, nil
	}
	others := f.otherDrivers(ctx, s.driver)
	namespaces := leaseNamespaces(s.controller, s.driver, leases)
	for _, p := range fitting {
		switch serves := serviceOf(p.workload, s.controller, s.driver, leases, others); {
		case serves == servesDriver, serves == serviceUnknown && slices.Contains(namespaces, p.namespace):
			p.serves = true
			chosen = append(chosen, p)
		case serves == serviceUnknown && (len(namespaces) == 0 || !hasOtherLease(s.controller, p.namespace, leases, others)):
			maybes = append(maybes, p)
		}
	}
	return chosen, maybes
}

// isOnlyProgram reports whether the only program of the controller in the cluster serves the
// only driver in the cluster: everything was listed, the driver has no Lease elsewhere, and
// the program leads by no Lease of another name.
func (f Finder) isOnlyProgram(ctx context.Context, s *sighting, maybes []program, leases []coordinationv1.Lease) bool {
	if !s.seen || len(maybes) != 1 || !f.isOnlyDriver(ctx, s.driver) ||
		len(leaseNamespaces(s.controller, s.driver, leases)) > 0 {
		return false
	}
	return !slices.ContainsFunc(leases, func(lease coordinationv1.Lease) bool {
		return lease.Namespace == maybes[0].namespace && isHeldBy(lease, maybes[0].workload) &&
			!families.IsSidecarLease(lease.Name, s.driver)
	})
}

// isOnlyDriver reports whether the driver is registered, and no other is.
func (f Finder) isOnlyDriver(ctx context.Context, driver string) bool {
	drivers, seen := cluster.List(ctx, f.Reader, cluster.CSIDrivers, cluster.Selection{})
	_, classesSeen := cluster.List(ctx, f.Reader, cluster.StorageClasses,
		cluster.Selection{}) // programs that name another driver are known by them
	return seen && classesSeen && len(drivers) == 1 &&
		families.SanitizedDriver(drivers[0].Name) == families.SanitizedDriver(driver)
}

// hasOtherLease reports whether the namespace has a Lease of another driver's sidecar.
func hasOtherLease(controller families.Controller, namespace string, leases []coordinationv1.Lease,
	others []string) bool {
	return slices.ContainsFunc(leases, func(lease coordinationv1.Lease) bool {
		return lease.Namespace == namespace && isOtherLease(controller, lease.Name, others)
	})
}

// leaseNamespaces returns the namespaces of the controller's Leases for the driver.
func leaseNamespaces(controller families.Controller, driver string, leases []coordinationv1.Lease) []string {
	var namespaces []string
	for _, lease := range leases {
		if controller.HasLease(lease.Name, driver) {
			namespaces = append(namespaces, lease.Namespace)
		}
	}
	return namespaces
}

// otherDrivers returns the names of the drivers but this one that are registered, or that a
// StorageClass names.
func (f Finder) otherDrivers(ctx context.Context, driver string) []string {
	var names []string
	drivers, _ := cluster.List(ctx, f.Reader, cluster.CSIDrivers, cluster.Selection{})
	for _, other := range drivers {
		names = append(names, other.Name)
	}
	classes, _ := cluster.List(ctx, f.Reader, cluster.StorageClasses, cluster.Selection{})
	for _, class := range classes {
		if strings.Contains(class.Provisioner, ".") && !strings.HasPrefix(class.Provisioner, "kubernetes.io/") {
			names = append(names, class.Provisioner)
		}
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool {
		return families.SanitizedDriver(name) == families.SanitizedDriver(driver)
	})
}

// hasLoopOff reports whether all containers of the program have the controller's loop
// switched off.
func hasLoopOff(controller families.Controller, p program) bool {
	return !slices.ContainsFunc(p.containers, func(c corev1.Container) bool {
		return !controller.IsSwitchedOff(slices.Concat(c.Command, c.Args))
	})
}

// classify sets the state of the programs by their pods.
func (s *sighting) classify(ctx context.Context, r *cluster.Reader, candidates []program) {
	states := make([]blocker.Workload, len(candidates))
	for i := range candidates {
		pods, seen := listPods(ctx, r, candidates[i].workload)
		candidates[i].classify(pods, seen, s.now)
		states[i] = candidates[i].state
	}
	s.programs, s.state = candidates, joinedState(states, s.seen)
}

// joinedState returns the state of a controller by those of its programs. seen: all
// workloads and pods were listed.
func joinedState(states []blocker.Workload, seen bool) blocker.Workload {
	if !seen {
		states = append(slices.Clone(states), blocker.WorkloadUnseen)
	}
	for _, state := range []blocker.Workload{
		blocker.WorkloadReady, blocker.WorkloadStarting, blocker.WorkloadUnseen, blocker.WorkloadUnready,
		blocker.WorkloadDegraded, blocker.WorkloadCrashing, blocker.WorkloadStopped,
	} {
		if slices.Contains(states, state) {
			return state
		}
	}
	return blocker.WorkloadAbsent
}

func (s *sighting) isAlive() bool {
	return s.state == blocker.WorkloadReady || s.state == blocker.WorkloadStarting
}

// addMaybes takes the programs into account of which nothing tells the driver. One that lives
// and is alone counts as alive; none proves that the controller is gone or crashes.
func (s *sighting) addMaybes(ctx context.Context, r *cluster.Reader, maybes []program) {
	decided := len(s.programs) > 0 && s.leaseState == blocker.LeaseExpiredTwice
	if s.isAlive() || s.state == blocker.WorkloadUnseen || decided {
		return
	}
	other := sighting{now: s.now, seen: true}
	other.classify(ctx, r, maybes)
	switch {
	case other.isAlive() && len(maybes) == 1 && len(s.programs) == 0 && s.leaseState == blocker.LeaseAbsent:
		s.state, s.programs, s.guessed = other.state, maybes, true
	case other.isAlive() || slices.Contains([]blocker.Workload{blocker.WorkloadUnready, blocker.WorkloadDegraded,
		blocker.WorkloadUnseen}, other.state):
		s.state = blocker.WorkloadUnready
	}
}

// findLease sets the freshest Lease of the controller: by name; or, where no Lease has a name
// of the table, the Lease that a pod of the programs held. Beside a driver, only names count,
// for the sidecars of a pod have a Lease each. The standby Lease is kept apart.
func (s *sighting) findLease(leases []coordinationv1.Lease, seen bool) {
	own := slices.DeleteFunc(slices.Clone(leases), func(lease coordinationv1.Lease) bool {
		return !s.controller.HasLease(lease.Name, s.driver)
	})
	if i := slices.IndexFunc(own, isStandby); i >= 0 {
		standby := own[i]
		s.standby, own = &standby, slices.Delete(own, i, i+1)
	}
	if len(own) == 0 && (s.driver == "" || len(s.controller.Leases) == 0) {
		own = s.heldLeases(leases)
	}
	s.leaseState, s.lease = leaseState(own, s.now)
	if s.leaseState == blocker.LeaseExpiredTwice && slices.ContainsFunc(s.programs, s.worksWithoutLease) {
		s.leaseState, s.leftLease, s.lease = blocker.LeaseAbsent, s.lease, nil
	}
	if !seen && s.leaseState != blocker.LeaseHeld {
		s.leaseState = blocker.LeaseUnseen
	}
}

// worksWithoutLease reports whether the program is ready, and has no leader election.
func (s *sighting) worksWithoutLease(p program) bool {
	return p.state == blocker.WorkloadReady && slices.ContainsFunc(p.containers, func(c corev1.Container) bool {
		return s.controller.RunsWithoutElection(slices.Concat(c.Command, c.Args))
	})
}

// isIdle reports whether replicas are ready, and none of them leads.
func (s *sighting) isIdle() bool {
	return blocker.ControllerState{Workload: s.state, Lease: s.leaseState}.IsIdle()
}

// standsBy reports whether replicas run, and wait for the standby Lease.
func (s *sighting) standsBy() bool {
	return s.standby != nil && s.isAlive() && s.leaseState != blocker.LeaseHeld
}

// heldLeases returns the Leases that a pod of the programs holds or held.
func (s *sighting) heldLeases(leases []coordinationv1.Lease) []coordinationv1.Lease {
	return slices.DeleteFunc(slices.Clone(leases), func(lease coordinationv1.Lease) bool {
		return !slices.ContainsFunc(s.programs, func(p program) bool {
			return lease.Namespace == p.namespace && isHeldBy(lease, p.workload)
		})
	})
}

// isSwitchedOff reports whether the loop runs nowhere: all programs have it switched off,
// and the Lease, which tells nothing of loops, is held by none but them.
func (s *sighting) isSwitchedOff() bool {
	if len(s.off) == 0 || s.state != blocker.WorkloadAbsent {
		return false
	}
	switch s.leaseState {
	case blocker.LeaseAbsent, blocker.LeaseExpiredTwice:
		return true
	case blocker.LeaseHeld, blocker.LeaseExpired:
		return slices.ContainsFunc(s.off, func(p program) bool { return isHeldBy(*s.lease, p.workload) })
	default:
		return false
	}
}
