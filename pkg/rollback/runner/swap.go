package runner

import (
	"context"
	"fmt"
	"slices"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/provisioner/identity"
	"github.com/exeunt-io/exeunt/pkg/rollback"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// upstreamImage is the image of upstream's sidecar with the same flags.
const upstreamImage = "registry.k8s.io/sig-storage/csi-provisioner:v6.3.0"

// removerOf says which program of upstream removes the finalizer.
func removerOf(name string) string {
	switch finalizer.Name(name) {
	case finalizer.External:
		return "csi-provisioner v5.1 and later removes it; before an older one run ours with --feature-gates=HonorPVReclaimPolicy=false first"
	case finalizer.InTree:
		return "kube-controller-manager 1.31 and later removes it; before an older one run ours with --feature-gates=HonorPVReclaimPolicy=false first"
	default:
		return "kube-controller-manager removes it"
	}
}

// stepProvisioners is the replacement of each provisioner of Exeunt by upstream's sidecar.
func (s *observation) stepProvisioners(early bool) Step {
	step := Step{Title: "Replace the provisioner by csi-provisioner", By: "you"}
	if !s.programs.leasesSeen {
		step.State = rollback.Blocked
	}
	for _, driver := range s.programs.drivers() {
		state, text := s.swapOf(driver, early)
		step.State = max(step.State, state)
		if text != "" {
			step.Text = append(step.Text, text)
		}
	}
	if step.State == rollback.Done {
		step.State = s.swapByPods(early)
	}
	if step.State != rollback.Done && early {
		step.Text = append(step.Text, "First finish the steps above.")
	}
	if step.State == rollback.Pending {
		if step.Commands = s.imageCommands(); len(step.Commands) > 0 {
			step.Text = append(step.Text,
				"Change the image in the chart or the manifests that own the workload; a command such as this one is undone by their next release:")
		}
	}
	return step
}

// swapOf returns the state of the swap for one driver, and what to do or to know.
func (s *observation) swapOf(driver string, early bool) (rollback.StepState, string) {
	server, name := s.server(driver), s.nameOf(driver)
	if server == rollback.ServerNone && !s.hasJournal(driver) {
		return rollback.Done, name +
			": the provisioner of Exeunt has ended, and nothing of it is left. Whether csi-provisioner runs is not visible without a Lease of it."
	}
	state := rollback.DecideSwap(rollback.SwapState{Server: server, Replaced: s.options.named(driver), Used: true,
		Early: early})
	if state == rollback.Done {
		return state, ""
	}
	return state, fmt.Sprintf("%s: %s", name, swapAdvice(server, name))
}

// swapByPods returns the state of a swap that is done as far as Leases show.
func (s *observation) swapByPods(early bool) rollback.StepState {
	switch s.programs.hasPods("", provisionerKind) {
	case rollback.PodsPresent:
		return rollback.DecideSwap(rollback.SwapState{Server: rollback.ServerExeunt, Early: early})
	case rollback.PodsUnseen:
		return rollback.Blocked
	case rollback.PodsAbsent:
	}
	return rollback.Done
}

// nameOf returns the name of the driver. Of one that only its leader Lease shows it is found by the volumes and
// claims that name the driver; else it is the name of the Lease.
func (s *observation) nameOf(driver string) string {
	for name := range s.known.drivers {
		if identity.LeaseName(name) == driver {
			return name
		}
	}
	return driver
}

// hasJournal reports whether a journal of the driver is left.
func (s *observation) hasJournal(driver string) bool {
	return slices.ContainsFunc(s.programs.journals, func(lease journalLease) bool { return lease.owner.Driver == driver })
}

func swapAdvice(server rollback.Server, driver string) string {
	switch server {
	case rollback.ServerExeunt:
		return "the provisioner of Exeunt runs."
	case rollback.ServerNone:
		return "the provisioner of Exeunt has ended, and no other was seen: start csi-provisioner. If it runs without leader election, say so by --stopped " + driver + "."
	default:
		return "neither Lease nor pod shows which provisioner runs. Once it is replaced, say so by --stopped " + driver + "."
	}
}

// imageCommands are examples of how the image is changed. A comment names the arguments with which
// the container would not start after that.
func (s *observation) imageCommands() []string {
	var all []string
	for _, pod := range s.programs.pods {
		if pod.kind != provisionerKind {
			continue
		}
		if unknown := unknownToUpstream(pod.args); len(unknown) > 0 {
			all = append(all, fmt.Sprintf("# first remove these arguments of %s in %s, namespace %s: %s", pod.container,
				pod.workload, pod.namespace, strings.Join(unknown, ", ")))
		}
		all = append(all,
			imageCommand(s.options.Commands, pod),
			s.options.Commands.Kubectl(pod.namespace, "rollout", "status", pod.workload))
	}
	return withoutRepeats(all)
}

// imageCommand changes the image of the container. A command is removed as well: the image of
// csi-provisioner has another.
func imageCommand(commands cluster.Commands, pod programPod) string {
	if !pod.command {
		return commands.Kubectl(pod.namespace, "set", "image", pod.workload, pod.container+"="+upstreamImage)
	}
	list := "containers"
	if pod.init {
		list = "initContainers"
	}
	return commands.Kubectl(pod.namespace, "patch", pod.workload, "-p",
		fmt.Sprintf(`{"spec":{"template":{"spec":{%q:[{"name":%q,"image":%q,"command":null}]}}}}`, list, pod.container,
			upstreamImage))
}

// stepLoops is the return to the loops of kube-controller-manager.
func (s *observation) stepLoops(early bool) Step {
	step := Step{Title: "Stop pv-controller, switch upstream's loops on", By: "you"}
	state := s.pvController()
	lease := s.programs.leases[[2]string{cluster.ControlPlane, cluster.PVControllerLease}]
	used := lease != nil && holderOf(lease) != standby
	step.State = rollback.DecideSwap(rollback.SwapState{Server: state.Server(), Replaced: true, Used: used, Early: early})
	if s.programs.loops == loopsOff {
		step.State = max(step.State, rollback.DecideSwap(rollback.SwapState{Server: rollback.ServerExeunt, Early: early}))
	}
	if unread := !s.programs.leasesSeen || !s.programs.podsSeen; unread && step.State == rollback.Done {
		step.State = rollback.Blocked
		return step
	}
	if step.State == rollback.Done {
		if s.programs.loops == loopsUnseen {
			step.Text = append(step.Text,
				"Whether kube-controller-manager runs its loops is not visible here: a new claim that becomes Bound shows it.")
		}
		return step
	}
	if early {
		step.Text = append(step.Text, "First finish the steps above.")
		return step
	}
	step.Commands = s.stopCommands()
	step.Text = append(step.Text,
		"Stop pv-controller in the chart or the manifests that own it, such as by the command below. Then take the three exclusions out of the flag --controllers of kube-controller-manager on every control-plane node:", exclusions())
	return step
}

// stopCommands stop pv-controller.
func (s *observation) stopCommands() []string {
	var all []string
	for _, pod := range s.programs.pods {
		line := s.options.Commands.Kubectl(pod.namespace, "scale", pod.workload, "--replicas=0")
		if pod.kind == pvControllerKind && !slices.Contains(all, line) {
			all = append(all, line)
		}
	}
	if len(all) == 0 && s.pvController().Server() != rollback.ServerNone {
		all = append(all, s.options.Commands.Kubectl("", "get", "deployments", "--all-namespaces", "--field-selector",
			"metadata.name="+deploy.PVController),
			s.options.Commands.Kubectl(deploy.Namespace, "scale", "deployment/"+deploy.PVController, "--replicas=0"))
	}
	return all
}

// exclusions are the words in the flag --controllers that switch the loops off.
func exclusions() string {
	text := ""
	for i, loop := range loops {
		if i > 0 {
			text += ","
		}
		text += "-" + loop
	}
	return text
}

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
			Active: lease.open > 0 && lease.kind == journal.KindActive, Unresolved: lease.open > 0 &&
				lease.kind == journal.KindUnresolved,
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
	object := blocker.Object{Kind: "Lease", Group: coordinationv1.GroupName, Namespace: lease.Namespace, Name: lease.Name,
		UID: string(lease.UID)}
	return newItem(object, "", decision, func(ctx context.Context) (metav1.Object, error) {
		return nil, s.reader.Kubernetes().CoordinationV1().Leases(lease.Namespace).
			Delete(ctx, lease.Name, metav1.DeleteOptions{
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
