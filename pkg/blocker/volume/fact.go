package volume

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/internal/enum"
	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/topology"
)

// Fact is a fact about the cluster with three values.
type Fact int

const (
	// Unseen: the fact could not be read. It counts neither as No nor as Yes.
	Unseen Fact = iota
	// No: the fact was read, and does not hold.
	No
	// Yes: the fact was read, and holds.
	Yes
)

// String returns the name of the value.
func (f Fact) String() string { return enum.Name(f, "unseen", "no", "yes") }

// FactOf returns No or Yes, or Unseen if the fact was not seen. A fact that holds in the
// part that was seen holds.
func FactOf(holds, seen bool) Fact {
	switch {
	case holds:
		return Yes
	case seen:
		return No
	}
	return Unseen
}

// Judgment is why a deletion waits, and whether the wait will end.
type Judgment struct {
	Reason  blocker.Reason
	Verdict blocker.Verdict
}

// verdictOf returns Waiting, Stuck or Unknown as the controller will act, cannot or may.
func verdictOf(controller blocker.ControllerState) blocker.Verdict {
	_, verdict := blocker.JudgeController(controller)
	return verdict
}

// isGone reports whether the controller is proven gone.
func isGone(controller blocker.ControllerState) bool {
	reason, _ := blocker.JudgeController(controller)
	return reason == blocker.ControllerGone
}

// AttachmentState is the observed state of a VolumeAttachment.
type AttachmentState struct {
	// Deleting: the attachment has a deletion timestamp.
	Deleting bool
	// Node: its node exists.
	Node Fact
	// Error: the attacher reports an error of detaching now.
	Error bool
	// Attacher detaches the volume.
	Attacher blocker.ControllerState
}

// Attachment returns why the volume stays attached.
func Attachment(s AttachmentState) Judgment {
	reason, verdict := blocker.JudgeController(s.Attacher)
	switch {
	case reason == blocker.ControllerGone:
		return Judgment{reason, verdict}
	case s.Error:
		return Judgment{blocker.DetachFailed, blocker.Stuck}
	case s.Deleting: // the attacher knows its node by an annotation, also when the node is gone
		return Judgment{reason, verdict}
	case s.Node == No:
		return Judgment{blocker.NodeGone, blocker.Stuck}
	case s.Node == Unseen:
		return Judgment{blocker.VolumeAttached, blocker.Unknown}
	}
	return Judgment{blocker.VolumeAttached, blocker.Waiting}
}

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

// UseState is the observed state of the users that keep a finalizer on an object.
type UseState struct {
	// Used: an object uses this one.
	Used Fact
	// Error: a user reports an error now: its own end will not come.
	Error Fact
	// Users: the program that the users wait for. Free users, such as pods, wait for none:
	// see Standing.
	Users blocker.ControllerState
	// Standing: the users exist until somebody deletes them; no program ends the use.
	Standing bool
	// Remover is the controller that removes the finalizer.
	Remover blocker.ControllerState
}

// InUse returns why a finalizer stays that protects an object in use. used is the reason
// while the object is used.
func InUse(s UseState, used blocker.Reason) Judgment {
	reason, verdict := blocker.JudgeController(s.Remover)
	switch {
	case s.Used == Yes && s.Standing:
		return Judgment{used, blocker.Waiting}
	case reason == blocker.ControllerGone && s.Used != Unseen:
		return Judgment{reason, verdict}
	case s.Used == No:
		return Judgment{reason, verdict}
	case s.Used == Unseen:
		return Judgment{used, blocker.Unknown}
	case s.Error == Yes:
		return Judgment{blocker.ControllerFails, blocker.Stuck}
	case isGone(s.Users):
		return Judgment{blocker.ControllerGone, blocker.Stuck}
	}
	return Judgment{used, usersVerdict(s)}
}

// usersVerdict returns Waiting if a program was seen alive that ends the use.
func usersVerdict(s UseState) blocker.Verdict {
	if s.Error != Unseen && (verdictOf(s.Users) == blocker.Waiting || verdictOf(s.Remover) == blocker.Waiting) {
		return blocker.Waiting
	}
	return blocker.Unknown
}

// nodeFlag makes a provisioner serve the volumes of its own node only.
const nodeFlag = "node-deployment"

// RunsPerNode reports whether the program runs on each node and deletes the volumes of that
// node only.
func (p Program) RunsPerNode() bool {
	runs := false
	for _, arg := range p.Args {
		name, value, has := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if name != nodeFlag || !strings.HasPrefix(arg, "-") {
			continue
		}
		on, err := strconv.ParseBool(value)
		runs = !has || err == nil && on
	}
	return runs
}

// NodeOf returns whether a node that reaches the volume can delete its disk: Yes if such a node
// is ready, No if none exists. seen: all nodes were listed.
func NodeOf(affinity *corev1.VolumeNodeAffinity, nodes []corev1.Node, seen bool) Fact {
	exists := false
	for i := range nodes {
		if !topology.Reaches(nodes[i].Labels, affinity) {
			continue
		}
		if exists = true; isReady(&nodes[i]) {
			return Yes
		}
	}
	if exists || !seen {
		return Unseen
	}
	return No
}

func isReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}
