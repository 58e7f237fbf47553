package volume

import (
	"github.com/exeunt-io/exeunt/internal/enum"
	"github.com/exeunt-io/exeunt/pkg/blocker"
)

// Secret is the observed state of the secret that DeleteVolume needs.
type Secret int

const (
	// SecretUnseen: the volume names a secret, which could not be read.
	SecretUnseen Secret = iota
	// SecretFine: the volume names none, the secret exists, or it cannot be created again,
	// so that the driver is called without it.
	SecretFine
	// SecretMissing: the secret does not exist, its namespace does.
	SecretMissing
	// SecretMissingMaybe: the secret does not exist, and its namespace could not be read.
	SecretMissingMaybe
)

// String returns the name of the value.
func (s Secret) String() string { return enum.Name(s, "unseen", "fine", "missing", "missingMaybe") }

// Journal is the observed state of the journal's entries for the claim of the volume.
type Journal int

const (
	// JournalUnseen: the Leases of the journal could not be read.
	JournalUnseen Journal = iota
	// JournalEmpty: no entry names the claim.
	JournalEmpty
	// JournalUnresolved: only an administrator can end the entry. It does not keep a volume that
	// a PersistentVolume records.
	JournalUnresolved
	// JournalOpen: the provisioner works on an entry, and ends it before it deletes the disk.
	JournalOpen
)

// String returns the name of the value.
func (j Journal) String() string { return enum.Name(j, "unseen", "empty", "unresolved", "open") }

// ReclaimState is the observed state of a released volume whose driver has to delete the disk.
type ReclaimState struct {
	// Failed: the phase is Failed, else Released.
	Failed bool
	// Attached: a VolumeAttachment names the volume.
	Attached Fact
	// Shared: another PersistentVolume has the same disk.
	Shared  Fact
	Secret  Secret
	Journal Journal
	// Feature says whether the provisioner serves the finalizer. It is FeatureOn for a volume
	// without the finalizer.
	Feature Feature
	// Error: the deletion failed within the last minutes, and has not succeeded since.
	Error Fact
	// Node: a provisioner that runs on each node has a node that reaches the volume, see [NodeOf];
	// Yes for any other provisioner.
	Node Fact
	// Server is who calls the driver: only the provisioner of Exeunt checks Shared and Secret first,
	// and only it reclaims Failed volumes.
	Server Server
	// Provisioner is the program that calls the driver.
	Provisioner blocker.ControllerState
}

// Reclaim returns why the disk is not deleted yet. As long as something keeps the driver
// from being asked, nothing is said about the call.
func Reclaim(s ReclaimState) []Judgment {
	s.Provisioner.ReportsError = false // Error says what is reported about this volume
	switch {
	case s.Server == ServerOther && s.Failed: // whatever else holds, csi-provisioner does not ask the driver
		return []Judgment{{blocker.PhaseNotReclaimed, blocker.Stuck}}
	case s.Server == ServerOther: // csi-provisioner asks the driver all the same
		s.Shared, s.Secret = No, SecretFine
	}
	all := s.obstacles()
	switch reason, verdict := blocker.JudgeController(s.Provisioner); {
	case reason == blocker.ControllerGone:
		return append(all, Judgment{blocker.DriverMissing, verdict})
	case verdict == blocker.Stuck:
		return append(all, Judgment{reason, verdict})
	case len(all) > 0:
		return all
	}
	return []Judgment{s.call()}
}

// obstacles returns what keeps the driver from being asked.
func (s ReclaimState) obstacles() []Judgment {
	var all []Judgment
	if s.Attached == Yes { // whether it will be detached is judged by the attachment itself
		all = append(all, Judgment{blocker.VolumeAttached, blocker.Waiting})
	}
	all = append(all, s.checks()...)
	if s.Journal == JournalOpen {
		all = append(all, Judgment{blocker.JournalEntry, min(verdictOf(s.Provisioner), blocker.Unknown)})
	}
	if s.Node == No {
		all = append(all, Judgment{blocker.NodeGone, blocker.Stuck})
	}
	if s.Failed && s.Server != ServerOurs && s.Error != Yes { // an error shows that the driver is asked
		all = append(all, Judgment{blocker.PhaseNotReclaimed, blocker.Unknown})
	}
	return append(all, s.featureObstacle()...)
}

// checks returns what keeps only the provisioner of Exeunt from asking the driver.
func (s ReclaimState) checks() []Judgment {
	verdict := blocker.Unknown
	if s.Server == ServerOurs {
		verdict = blocker.Stuck
	}
	var all []Judgment
	if s.Shared == Yes && (s.Server == ServerOurs || s.Error != Yes) { // an error shows that the driver is asked
		all = append(all, Judgment{blocker.HandleShared, verdict})
	}
	switch s.Secret {
	case SecretMissing:
		all = append(all, Judgment{blocker.SecretMissing, verdict})
	case SecretMissingMaybe:
		all = append(all, Judgment{blocker.SecretMissing, blocker.Unknown})
	case SecretFine, SecretUnseen:
	}
	return all
}

// featureObstacle returns the judgment of a provisioner that does not serve the finalizer.
func (s ReclaimState) featureObstacle() []Judgment {
	switch {
	case s.Feature == FeatureOff:
		return []Judgment{{blocker.FeatureOff, blocker.Stuck}}
	case s.Feature == FeatureOffMaybe && s.Error != Yes: // an error shows that the driver is asked
		return []Judgment{{blocker.FeatureOff, blocker.Unknown}}
	}
	return nil
}

// call judges the call of the driver.
func (s ReclaimState) call() Judgment {
	reason, verdict := blocker.JudgeController(s.Provisioner)
	switch asked := s.isAsked(); {
	case s.Error == Yes && asked:
		return Judgment{blocker.DriverRefuses, blocker.Stuck}
	case s.Error == Yes: // perhaps only because the volume is attached
		return Judgment{blocker.DriverRefuses, blocker.Unknown}
	case reason != blocker.ControllerActs:
		return Judgment{reason, verdict}
	case asked && s.Shared != Unseen && s.Error != Unseen && s.Node != Unseen:
		return Judgment{blocker.DriverDeletes, blocker.Waiting}
	}
	return Judgment{blocker.DriverDeletes, blocker.Unknown}
}

// isAsked reports whether it was seen that no obstacle keeps the driver from being asked.
func (s ReclaimState) isAsked() bool {
	return s.Attached != Unseen && s.Secret != SecretUnseen && s.Journal != JournalUnseen
}

// PluginState is the observed state of a released volume whose in-tree plugin, or provisioner without
// a CSI driver, has to delete the disk.
type PluginState struct {
	// External: a provisioner outside of Kubernetes.
	External bool
	// Missing: the message of the Failed volume says that no plugin can delete it.
	Missing bool
	// Error: the plugin reports an error now.
	Error Fact
	// Controller runs the plugins, or is the provisioner.
	Controller blocker.ControllerState
}

// Plugin returns why the disk is not deleted yet.
func Plugin(s PluginState) Judgment {
	reason, verdict := blocker.JudgeController(s.Controller)
	switch {
	case s.Missing, s.External && reason == blocker.ControllerGone:
		return Judgment{blocker.DriverMissing, blocker.Stuck}
	case reason == blocker.ControllerGone:
		return Judgment{reason, verdict}
	case s.Error == Yes:
		return Judgment{blocker.DriverRefuses, blocker.Stuck}
	case reason != blocker.ControllerActs:
		return Judgment{reason, verdict}
	case s.Error == Unseen:
		return Judgment{blocker.DriverDeletes, blocker.Unknown}
	}
	return Judgment{blocker.DriverDeletes, blocker.Waiting}
}
