package volume

import "github.com/exeunt-io/exeunt/pkg/blocker"

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
