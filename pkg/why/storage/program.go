package storage

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/blocker/volume"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/why/chain"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/families"
	"github.com/exeunt-io/exeunt/pkg/why/holder"
)

// look finds the controllers of the finalizer beside the driver, "" for none. Each of them
// may act.
func look(ctx context.Context, e chain.Explorer, name, kind, group, driver string) holder.Finding {
	controllers := controllersOf(name, kind, group)
	if len(controllers) == 0 {
		return holder.Finding{}
	}
	return e.Holders().LookAll(ctx, controllers, driver)
}

// controllersOf returns the controllers that may remove the finalizer.
func controllersOf(name, kind, group string) []families.Controller {
	family, known := families.Find(name, kind, group)
	if !known {
		return nil
	}
	return family.Controllers()
}

// provisioners returns the programs beside a CSI driver that create and delete volumes.
func provisioners() []families.Controller {
	return controllersOf(string(finalizer.External), "PersistentVolume", "")
}

// binders returns the programs that bind claims, and delete volumes of in-tree plugins.
func binders() []families.Controller {
	return controllersOf(string(finalizer.InTree), "PersistentVolume", "")
}

// sentBy returns the events that one of the controllers may have sent beside the driver: what another
// program says tells nothing of theirs.
func sentBy(events []corev1.Event, controllers []families.Controller, driver string) []corev1.Event {
	return slices.DeleteFunc(slices.Clone(events), func(event corev1.Event) bool {
		return !slices.ContainsFunc(controllers, func(c families.Controller) bool { return c.MaySend(cluster.Component(&event), driver) })
	})
}

// programs returns the containers that run and that fits selects.
func programs(finding holder.Finding, fits func(holder.Container) bool) []volume.Program {
	var all []volume.Program
	for _, container := range finding.Containers {
		if !container.Stopped && fits(container) {
			all = append(all, volume.Program{Image: container.Image, Args: container.Args})
		}
	}
	return all
}

func serves(container holder.Container) bool { return container.Serves }

// featureOf returns whether the provisioner serves the finalizer of KEP-2644. What a program
// says of which nothing tells the driver is no proof.
func featureOf(finding holder.Finding) volume.Feature {
	if known := programs(finding, serves); len(known) > 0 {
		return volume.FeatureOfAll(known)
	}
	guessed := programs(finding, func(container holder.Container) bool { return container.Guessed })
	if volume.FeatureOfAll(guessed) == volume.FeatureOff {
		return volume.FeatureOffMaybe
	}
	return volume.FeatureUnknown
}

// judged fills in what the judgment of the controller says.
func judged(b blocker.Blocker, judgment volume.Judgment, finding holder.Finding) blocker.Blocker {
	b.Reason, b.Verdict, b.Holder, b.Next = judgment.Reason, judgment.Verdict, finding.Holder, finding.Next
	b.Evidence = append(b.Evidence, finding.Evidence...)
	if judgment.Verdict == blocker.Stuck { // nothing blocks a deletion before it was asked for
		b.Since = max(b.Since, finding.Since)
	}
	return b
}
