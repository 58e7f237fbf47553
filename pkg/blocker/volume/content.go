package volume

import "github.com/exeunt-io/exeunt/pkg/blocker"

// ContentState is the observed state of the content of a snapshot, or of a group of snapshots,
// that is being deleted.
type ContentState struct {
	// Bound: the snapshot that the content belongs to exists, and is not being deleted.
	Bound Fact
	// Deletes: the policy deletes the snapshot in storage with the content.
	Deletes bool
	// Error: the deletion failed within the last minutes, and has not succeeded since.
	Error Fact
	// Sidecar is csi-snapshotter, which calls the driver.
	Sidecar blocker.ControllerState
}

// Content returns why the content is not deleted yet.
func Content(s ContentState) Judgment {
	s.Sidecar.ReportsError = false // Error says what is reported about this content
	reason, verdict := blocker.JudgeController(s.Sidecar)
	switch {
	case s.Bound == Yes:
		return Judgment{blocker.SnapshotBound, blocker.Waiting}
	case s.Bound == Unseen:
		return Judgment{blocker.SnapshotBound, blocker.Unknown}
	case !s.Deletes:
		return Judgment{reason, verdict}
	case reason == blocker.ControllerGone:
		return Judgment{blocker.DriverMissing, verdict}
	case s.Error == Yes:
		return Judgment{blocker.DriverRefuses, blocker.Stuck}
	case reason != blocker.ControllerActs:
		return Judgment{reason, verdict}
	case s.Error == Unseen:
		return Judgment{blocker.DriverDeletes, blocker.Unknown}
	}
	return Judgment{blocker.DriverDeletes, blocker.Waiting}
}
