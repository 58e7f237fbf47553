package runner

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/patch"
	"github.com/exeunt-io/exeunt/pkg/reclaim/external"
	"github.com/exeunt-io/exeunt/pkg/rollback"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/families"
	"github.com/exeunt-io/exeunt/pkg/why/holder"
)

// namesUnserved reports whether the administrator says that nobody removes the finalizer
// from the volume.
func (s *observation) namesUnserved(volume *corev1.PersistentVolume, name finalizer.Name) bool {
	if name == finalizer.External {
		return slices.Contains(s.options.Unserved, external.DriverOf(volume))
	}
	return s.options.UnservedLoops
}

// addSharedFinalizers adds the finalizers that the administrator calls unserved. All that are
// removed from the volume go in one write.
func (s *observation) addSharedFinalizers(ctx context.Context, object blocker.Object, volume *corev1.PersistentVolume) {
	var removed []finalizer.Name
	for _, name := range sharedOf(volume) {
		if !s.namesUnserved(volume, name) {
			continue
		}
		decision := s.decideShared(ctx, volume, name)
		if decision.Removes() {
			removed = append(removed, name)
			continue
		}
		s.shared.items = append(s.shared.items, newItem(object, "finalizer "+string(name), decision, nil))
	}
	if len(removed) == 0 {
		return
	}
	remove := func(ctx context.Context) (metav1.Object, error) {
		return s.patchVolume(ctx, volume.Name, finalizer.Edit(patch.ForVersion(volume), volume,
			finalizer.Change{Remove: removed}))
	}
	part := "finalizer"
	for _, name := range removed {
		part += " " + string(name)
	}
	item := newItem(object, part, rollback.Decision{Action: rollback.Remove, Reason: rollback.NobodyServes}, remove)
	if disk := diskOf(volume); disk != "" && removed[0] == finalizer.External {
		item.Note = disk + " stays in storage"
	}
	s.shared.items = append(s.shared.items, item)
}

// decideShared decides about a finalizer that the administrator calls unserved.
func (s *observation) decideShared(ctx context.Context, volume *corev1.PersistentVolume,
	name finalizer.Name) rollback.Decision {
	state := rollback.SharedFinalizerState{Named: true, Remover: s.loopsRemover()}
	if name == finalizer.External {
		state.Remover = s.removerOf(ctx, external.DriverOf(volume))
	}
	state.InUse = name == finalizer.VolumeProtection && volume.Status.Phase == corev1.VolumeBound
	return rollback.DecideSharedFinalizer(state)
}

// removerOf is driverRemover, once for each driver.
func (s *observation) removerOf(ctx context.Context, driver string) rollback.Remover {
	return cluster.Remember(s.reader, "remover of "+driver,
		func(*cluster.Reader) rollback.Remover { return s.driverRemover(ctx, driver) })
}

// driverRemover tells whether a provisioner of the driver was seen, or could start: the
// driver is installed.
func (s *observation) driverRemover(ctx context.Context, driver string) rollback.Remover {
	remover := mostPresent(s.installed(ctx, driver), s.sidecarOf(ctx, driver))
	for _, state := range s.states(driver) {
		server := state.Server()
		switch {
		case server == rollback.ServerExeunt, server == rollback.ServerUpstream, state.Lease == rollback.LeaseOther:
			return rollback.RemoverPresent
		case state.Lease == rollback.LeaseExpired, state.Lease == rollback.LeaseUnseen, state.Pods == rollback.PodsUnseen:
			remover = mostPresent(remover, rollback.RemoverUnseen)
		}
	}
	return remover
}

// sidecarOf tells whether a workload or pod runs a provisioner of the driver, upstream's
// included. A driver needs no CSIDriver, and its sidecar no Lease.
func (s *observation) sidecarOf(ctx context.Context, driver string) rollback.Remover {
	family, _ := families.Find(string(finalizer.External), "PersistentVolume", "")
	finding := holder.Finder{Reader: s.reader, Commands: s.options.Commands}.LookAll(ctx, family.Controllers(), driver)
	serves := slices.ContainsFunc(finding.Containers, func(c holder.Container) bool { return c.Serves })
	switch workload := finding.State.Workload; {
	case serves, workload == blocker.WorkloadReady, workload == blocker.WorkloadStarting:
		return rollback.RemoverPresent
	case workload == blocker.WorkloadUnseen, workload == blocker.WorkloadUnready: // one of several may be the driver's
		return rollback.RemoverUnseen
	}
	return rollback.RemoverAbsent
}

// mostPresent returns the first of both in the order: present, unseen, absent.
func mostPresent(a, b rollback.Remover) rollback.Remover {
	for _, first := range []rollback.Remover{rollback.RemoverPresent, rollback.RemoverUnseen} {
		if a == first || b == first {
			return first
		}
	}
	return rollback.RemoverAbsent
}

// installed tells whether the driver is installed, in the cluster or on a node.
func (s *observation) installed(ctx context.Context, driver string) rollback.Remover {
	drivers, driversSeen := cluster.List(ctx, s.reader, cluster.CSIDrivers, cluster.Selection{})
	nodes, nodesSeen := cluster.List(ctx, s.reader, cluster.CSINodes, cluster.Selection{})
	present := slices.ContainsFunc(drivers, func(d storagev1.CSIDriver) bool { return d.Name == driver })
	present = present || slices.ContainsFunc(nodes, func(n storagev1.CSINode) bool {
		return slices.ContainsFunc(n.Spec.Drivers, func(d storagev1.CSINodeDriver) bool { return d.Name == driver })
	})
	switch {
	case present:
		return rollback.RemoverPresent
	case driversSeen && nodesSeen:
		return rollback.RemoverAbsent
	}
	return rollback.RemoverUnseen
}

// loopsRemover tells whether pv-controller or kube-controller-manager was seen.
func (s *observation) loopsRemover() rollback.Remover {
	own, lease := s.pvController(), s.lease(cluster.ControlPlane, cluster.UpstreamLoopsLease)
	switch {
	case own.Server() == rollback.ServerExeunt, lease == rollback.LeaseOther, lease == rollback.LeaseExeunt,
		s.programs.loops != loopsUnseen:
		return rollback.RemoverPresent
	case !s.programs.podsSeen, !s.programs.leasesSeen, lease == rollback.LeaseExpired, own.Lease == rollback.LeaseExpired:
		return rollback.RemoverUnseen
	}
	return rollback.RemoverAbsent
}
