package status

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/internal/terminal"
	"github.com/exeunt-io/exeunt/pkg/migration"
	"github.com/exeunt-io/exeunt/pkg/reclaim/external"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// BeforeSwitch is what a switch to Exeunt does, and what it needs.
type BeforeSwitch struct {
	// Complete: all volumes and claims were read.
	Complete bool           `json:"complete"`
	Deletes  []DoomedVolume `json:"deletes"`
	// MissingRights are sentences about rights that the programs lack.
	MissingRights []string `json:"missingRights"`
}

// DoomedVolume is a volume whose disk newly started programs of Exeunt delete.
type DoomedVolume struct {
	Name   string `json:"name"`
	Phase  string `json:"phase"`
	Driver string `json:"driver"`
	Claim  string `json:"claim"`
	// When is "at once" or "after its claim".
	When string `json:"when"`
}

// addBeforeSwitch adds the volumes that a switch deletes, and the missing rights.
func (s *survey) addBeforeSwitch(ctx context.Context) {
	found := &BeforeSwitch{Complete: s.seen.volumes && s.seen.claims, Deletes: []DoomedVolume{}, MissingRights: []string{}}
	for _, facts := range s.sortedVolumes() {
		when := deletionOf(facts.state)
		if when == deletesNothing || facts.driver == "" ||
			facts.reclaimer == otherReclaims { // another program deletes these disks
			continue
		}
		doomed := DoomedVolume{Name: facts.name, Phase: string(facts.phase), Driver: facts.driver, When: when.String()}
		if facts.state.Deleting {
			doomed.Phase = strings.TrimPrefix(doomed.Phase+", Terminating", ", ")
		}
		if facts.claim != nil {
			doomed.Claim = facts.claim.Namespace + "/" + facts.claim.Name
		}
		found.Deletes = append(found.Deletes, doomed)
	}
	if len(found.Deletes) > 0 {
		s.report.find("a switch to Exeunt deletes the disks of %s: set Retain on those to be kept",
			terminal.Count(len(found.Deletes), "volume"))
	}
	if !s.seen.claims && s.seen.volumes {
		s.Reader.Note("claims were not read: whether volumes with a claim are deleted after a switch is not known")
	}
	found.MissingRights = append(found.MissingRights, s.missingRights(ctx)...)
	if len(found.MissingRights) > 0 {
		s.report.find("the programs of Exeunt lack %s", terminal.Count(len(found.MissingRights), "right"))
	}
	s.report.BeforeSwitch = found
}

// futureDriver returns the driver that reclaims the volume once our pv-controller runs, which
// names the driver of migrated in-tree volumes.
func futureDriver(volume *corev1.PersistentVolume, library migration.Library) string {
	driver := external.DriverOf(volume)
	if driver != "" && !isInTree(driver) {
		return driver
	}
	plugin := volume.Annotations[storage.AnnDynamicallyProvisioned]
	if plugin == "" {
		plugin = library.PluginOf(volume)
	}
	if migrated, is := library.Driver(plugin); is {
		return migrated
	}
	return driver
}
