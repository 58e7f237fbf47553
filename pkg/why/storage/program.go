package storage

import (
	"context"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/blocker/families"
	"github.com/exeunt-io/exeunt/pkg/blocker/volume"
	"github.com/exeunt-io/exeunt/pkg/why/chain"
	"github.com/exeunt-io/exeunt/pkg/why/holder"
)

// look finds the controllers of the finalizer beside the driver, "" for none. Each of them
// may act.
func look(ctx context.Context, e chain.Explorer, finalizer, kind, group, driver string) holder.Finding {
	family, known := families.Find(finalizer, kind, group)
	if !known {
		return holder.Finding{}
	}
	return e.Holders().LookAll(ctx, family.Controllers(), driver)
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
	if judgment.Verdict == blocker.Stuck && finding.Since != "" {
		b.Since = finding.Since
	}
	return b
}
