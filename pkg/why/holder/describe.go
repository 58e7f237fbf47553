package holder

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/families"
)

// main returns the program that decides the state, or nil.
func (s *sighting) main() *program {
	for i := range s.programs {
		if s.programs[i].state == s.state {
			return &s.programs[i]
		}
	}
	return nil
}

// holder names the workload, or the holder of the Lease, or the controller.
func (s *sighting) holder() string {
	switch main := s.main(); {
	case main != nil:
		return main.String()
	case len(s.off) > 0 && s.isSwitchedOff():
		return s.off[0].String()
	case s.lease != nil && leaseHolder(*s.lease) != "":
		return fmt.Sprintf("Lease %s/%s held by %s", s.lease.Namespace, s.lease.Name, leaseHolder(*s.lease))
	case len(s.programs) > 0:
		return s.programs[0].String()
	}
	return s.controller.Name + unseen
}

// unseen follows the name of a controller that was not seen.
const unseen = " (not visible)"

// evidence describes the observed workloads, Leases and installation.
func (s *sighting) evidence() []blocker.Evidence {
	const limit = 5
	var all []blocker.Evidence
	for _, p := range s.programs[:min(limit, len(s.programs))] {
		all = append(all, blocker.Evidence{Source: blocker.FromWorkload, Text: p.text})
	}
	for _, p := range s.off[:min(limit, len(s.off))] {
		all = append(all, blocker.Evidence{Source: blocker.FromWorkload, Text: s.offText(p)})
	}
	if s.state == blocker.WorkloadAbsent && len(s.off) == 0 {
		all = append(all, blocker.Evidence{Source: blocker.FromList,
			Text: "no workload and no pod runs " + s.controller.Name})
	}
	all = append(all, s.standbyEvidence(), s.leaseEvidence())
	if s.uninstalled != "" {
		all = append(all, blocker.Evidence{Source: blocker.FromList, Text: s.uninstalled})
	}
	return slices.DeleteFunc(all, func(e blocker.Evidence) bool { return e.Text == "" })
}

// offText says that the program has the controller switched off.
func (s *sighting) offText(p program) string {
	if len(s.controller.Loops) == 0 {
		return p.String() + " writes nothing: it has the argument " + s.offFlag(p)
	}
	return p.String() + " has the loop " + s.controller.Loops[0] + " switched off by its arguments"
}

// onStep says how to switch the controller of the program on.
func (s *sighting) onStep(p program) string {
	if len(s.controller.Loops) == 0 {
		return fmt.Sprintf("remove the argument %s of %s", s.offFlag(p), p)
	}
	return fmt.Sprintf("switch the loop %s on again: change the argument %s of %s", s.controller.Loops[0], s.offFlag(p), p)
}

// offFlag returns the argument of the program that switches the controller off.
func (s *sighting) offFlag(p program) string {
	for _, c := range p.containers {
		if flag := s.controller.OffFlag(slices.Concat(c.Command, c.Args)); flag != "" {
			flag, _, _ = strings.Cut(flag, "=")
			return flag
		}
	}
	return ""
}

// standbyEvidence says that no replica acts before the standby Lease is deleted.
func (s *sighting) standbyEvidence() blocker.Evidence {
	if s.standby == nil {
		return blocker.Evidence{}
	}
	text := fmt.Sprintf("Lease %s/%s: held by %q, which is no replica: %s acts once this Lease is deleted",
		s.standby.Namespace, s.standby.Name, leaseHolder(*s.standby), s.controller.Name)
	if s.standbyEnds() {
		text += ", or runs out at " + blocker.Time(leaseEnd(*s.standby))
	}
	return blocker.Evidence{Source: blocker.FromLease, Text: text}
}

// standbyEnds reports whether the standby Lease runs out: "exeunt rollback nodes" takes that of node-terminator for minutes,
// so that the program can be uninstalled.
func (s *sighting) standbyEnds() bool { return s.standby.Name == cluster.NodeTerminatorLease }

// standbyStep returns the step that ends the standby.
func (f Finder) standbyStep(s sighting) string {
	when := "once the loops of kube-controller-manager are off"
	if s.standbyEnds() {
		when = "if node-terminator is to stay and not to wait until the Lease runs out"
	}
	return cluster.Comments(when+", delete the Lease that keeps "+s.controller.Name+" on standby",
		f.Commands.Kubectl(s.standby.Namespace, "delete", "lease", s.standby.Name))
}

// leaseEvidence says who holds the Lease, or held it last.
func (s *sighting) leaseEvidence() blocker.Evidence {
	if s.lease == nil {
		if s.leftLease != nil {
			return blocker.Evidence{Source: blocker.FromLease,
				Text: fmt.Sprintf("Lease %s/%s ended at %s, and counts for nothing: %s runs without leader election",
					s.leftLease.Namespace, s.leftLease.Name, blocker.Time(leaseEnd(*s.leftLease)), s.main())}
		}
		if s.leaseState == blocker.LeaseAbsent && len(s.controller.Leases) > 0 && s.standby == nil {
			return blocker.Evidence{Source: blocker.FromList, Text: "no Lease of " + s.controller.Name + " exists"}
		}
		return blocker.Evidence{}
	}
	text := fmt.Sprintf("Lease %s/%s: held by %q until %s", s.lease.Namespace, s.lease.Name, leaseHolder(*s.lease),
		blocker.Time(leaseEnd(*s.lease)))
	switch s.leaseState {
	case blocker.LeaseExpired:
		text += ", which is past, though not for long"
	case blocker.LeaseExpiredTwice:
		text += ", and not renewed since"
		if s.isIdle() {
			text += ": no replica leads, although pods are ready; or the clock of the leader is wrong"
		}
	default:
	}
	return blocker.Evidence{Source: blocker.FromLease, Text: text}
}

// since returns since when the controller is gone or crashes, or "".
func (s *sighting) since() string {
	switch main := s.main(); {
	case s.isSwitchedOff():
		return ""
	case (s.state == blocker.WorkloadCrashing || s.state == blocker.WorkloadDegraded) && main != nil:
		return blocker.Time(main.since)
	case s.leaseState == blocker.LeaseExpiredTwice && (!s.isAlive() || s.isIdle()):
		return blocker.Time(leaseEnd(*s.lease))
	}
	return blocker.Time(time.Time{})
}

// containers returns the containers that run the controller.
func (s *sighting) containers() []Container {
	var all []Container
	for _, p := range s.programs {
		for _, c := range p.containers {
			all = append(all, Container{
				Workload: p.String(), Image: c.Image, Args: slices.Concat(c.Command, c.Args),
				Serves: p.serves, Guessed: s.guessed, Stopped: p.wanted == 0 && p.state != blocker.WorkloadReady,
			})
		}
	}
	return all
}

// next returns the next step by the observed state of the controller.
func (f Finder) next(s sighting) string {
	switch main := s.main(); {
	case s.isSwitchedOff():
		return cluster.Steps(s.onStep(s.off[0]))
	case s.standsBy():
		return f.standbyStep(s)
	case main == nil, s.state == blocker.WorkloadStopped && s.leadsElsewhere(main):
		return f.nextWithoutProgram(s)
	default:
		return f.nextOfProgram(s, main)
	}
}

// nextOfProgram returns the next step for the program that decides the state.
func (f Finder) nextOfProgram(s sighting, main *program) string {
	container := main.containers[0].Name
	switch {
	case (s.state == blocker.WorkloadCrashing || s.state == blocker.WorkloadDegraded) && main.example != "":
		return cluster.Steps(fmt.Sprintf("repair %s, which crashes", main),
			f.Commands.Kubectl(main.namespace, "describe", "pod", main.example),
			f.Commands.Kubectl(main.namespace, "logs", main.example, "-c", cmp.Or(main.failing, container), "--previous"))
	case s.isIdle():
		return cluster.Steps(fmt.Sprintf("find out why no replica of %s leads: its log says, and whether its Lease is renewed", main),
			f.Commands.Kubectl(main.namespace, "logs", main.target(), "-c", container, "--since=10m"),
			f.Commands.Kubectl(s.lease.Namespace, "get", "lease", s.lease.Name, "-o", "yaml"))
	case s.state == blocker.WorkloadStopped && main.kind != "DaemonSet":
		return cluster.Steps(fmt.Sprintf("start %s again", main),
			f.Commands.Kubectl(main.namespace, "scale", main.target(), "--replicas=1"))
	case s.state == blocker.WorkloadReady:
		return cluster.Steps(fmt.Sprintf("wait for %s, or read its log", main),
			f.Commands.Kubectl(main.namespace, "logs", main.target(), "-c", container, "--since=10m"))
	}
	return cluster.Steps(fmt.Sprintf("look at %s", main), f.Commands.Kubectl(main.namespace, "describe", main.target()))
}

// leadsElsewhere reports whether another program than this one holds the Lease.
func (s *sighting) leadsElsewhere(p *program) bool {
	return s.leaseState == blocker.LeaseHeld && !isHeldBy(*s.lease, p.workload)
}

// nextWithoutProgram returns the next step where no workload was seen.
func (f Finder) nextWithoutProgram(s sighting) string {
	name := s.controller.Name
	switch {
	case s.leaseState == blocker.LeaseHeld:
		return cluster.Steps(fmt.Sprintf("wait for %s, whose leader is %s", name, leaseHolder(*s.lease)),
			f.Commands.Kubectl(s.lease.Namespace, "get", "lease", s.lease.Name, "-o", "yaml"))
	case s.state == blocker.WorkloadAbsent && s.leaseState == blocker.LeaseExpiredTwice && s.controller.ControlPlane:
		return cluster.Steps("start "+name+" again, whose leader was "+leaseHolder(*s.lease),
			f.Commands.Kubectl(s.lease.Namespace, "get", "lease", s.lease.Name, "-o", "yaml"))
	case s.state == blocker.WorkloadAbsent && s.leaseState == blocker.LeaseExpiredTwice, s.uninstalled != "":
		return installStep(s.controller, s.driver)
	case s.controller.RunsIn != "":
		return cluster.Steps("look for " + name + " where it runs, in " + s.controller.RunsIn + ", and read its log there")
	case s.controller.ControlPlane:
		return cluster.Steps("ask whoever runs the control plane whether " + name + " runs, and for its log")
	}
	return cluster.Steps("find out where "+name+" runs"+usually(s.controller.Namespaces),
		f.Commands.Kubectl("", "get", "deployments,statefulsets,daemonsets,pods", "-A", "-o", "wide"))
}

// installStep returns the step for a controller that is not installed, beside the driver unless that is "".
func installStep(controller families.Controller, driver string) string {
	if driver != "" {
		return cluster.Steps("install driver " + driver + " again, with its " + controller.Name + ", so that it cleans up")
	}
	return cluster.Steps("install " + controller.Name + " again" + usually(controller.Namespaces) +
		", so that it cleans up")
}

func usually(namespaces []string) string {
	if len(namespaces) == 0 {
		return ""
	}
	return " (usually in namespace " + strings.Join(namespaces, " or ") + ")"
}

// target names the workload for kubectl.
func (w workload) target() string { return strings.ToLower(w.kind) + "/" + w.name }

// leaseState returns the state of the freshest Lease, and that Lease. LeaseAbsent without any.
func leaseState(leases []coordinationv1.Lease, now time.Time) (blocker.LeaseState, *coordinationv1.Lease) {
	if len(leases) == 0 {
		return blocker.LeaseAbsent, nil
	}
	freshest := slices.MaxFunc(leases, func(a, b coordinationv1.Lease) int {
		return cmp.Or(leaseEnd(a).Compare(leaseEnd(b)), -cmp.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name))
	})
	return blocker.JudgeLease(&freshest, now), &freshest
}

// leaseEnd returns when the Lease ran out or runs out.
func leaseEnd(lease coordinationv1.Lease) time.Time { return blocker.LeaseEnd(&lease) }

// leaseHolder returns the identity of the leader, "" if the Lease is released.
func leaseHolder(lease coordinationv1.Lease) string { return blocker.LeaseHolder(&lease) }

// isStandby reports whether no replica holds the Lease: it is that of deploy/pv-controller/standby, or one that "exeunt
// rollback nodes" has taken.
func isStandby(lease coordinationv1.Lease) bool {
	return lease.Namespace == cluster.ControlPlane && leaseHolder(lease) == cluster.StandbyHolder &&
		(lease.Name == cluster.PVControllerLease || lease.Name == cluster.NodeTerminatorLease)
}

// besideStandby returns the state of a controller beside its standby Lease, which is no sign of life.
// lease is the state of its other Leases.
func besideStandby(workload blocker.Workload, lease blocker.LeaseState) blocker.ControllerState {
	alive := workload == blocker.WorkloadReady || workload == blocker.WorkloadStarting
	switch {
	case !alive, lease == blocker.LeaseHeld:
		return blocker.ControllerState{Workload: workload, Lease: lease}
	case lease == blocker.LeaseAbsent, lease == blocker.LeaseExpiredTwice: // its replicas wait
		return blocker.ControllerState{Workload: blocker.WorkloadStopped, Lease: blocker.LeaseAbsent}
	}
	return blocker.ControllerState{} // another Lease may have a leader
}
