package termination

import "time"

// MaxCutShort is the largest number of pods in the list of a report. The count has all of them.
const MaxCutShort = 200

// Report is what a termination did, and what is left of it. It is the content of one ConfigMap a node. Nothing is decided
// from it.
type Report struct {
	Node       string `json:"node"`
	UID        string `json:"uid"`
	ProviderID string `json:"providerID,omitempty"`
	// Requested is R, Deadline is D; without a deadline it is absent.
	Requested time.Time  `json:"requested"`
	Deadline  *time.Time `json:"deadline,omitempty"`
	Phase     Phase      `json:"phase"`
	// Reason is what the termination waits for, or how it ended.
	Reason string `json:"reason,omitempty"`
	Counts Counts `json:"counts"`
	// CutShort are the pods that got less than their grace period, MaxCutShort at most.
	CutShort []CutShort `json:"cutShort,omitempty"`
	// Left are the pods that are still there.
	Left    []Left         `json:"left,omitempty"`
	Volumes []ReportVolume `json:"volumes,omitempty"`
	// OverdueSeconds is how long after E the machine still ran, or runs.
	OverdueSeconds int64 `json:"overdueSeconds,omitempty"`
}

// Phase is how far a termination has come.
type Phase string

const (
	// PhaseDraining: pods are being ended.
	PhaseDraining Phase = "Draining"
	// PhaseDetaching: pods are gone, volumes are attached.
	PhaseDetaching Phase = "Detaching"
	// PhaseStopping: the machine is being stopped.
	PhaseStopping Phase = "Stopping"
	// PhaseCleaning: the machine is off; its pods and volumes are being freed.
	PhaseCleaning Phase = "Cleaning"
	// PhaseEnded: the Node is released.
	PhaseEnded Phase = "Ended"
	// PhaseAbandoned: a user removed the finalizer.
	PhaseAbandoned Phase = "Abandoned"
)

// Counts has each pod that was on the node at the first action, or appeared later, once.
type Counts struct {
	// Evicted, Deleted: by us, with the whole grace period. CutShort: with less. Removed: after the proof.
	Evicted  int `json:"evicted"`
	Deleted  int `json:"deleted"`
	CutShort int `json:"cutShort"`
	Removed  int `json:"removed"`
	// Others: by somebody else. Finished: the pod ended by itself.
	Others   int `json:"others"`
	Finished int `json:"finished"`
	// WithNode: pods of DaemonSets and static pods, which go with the Node.
	WithNode int `json:"withNode"`
	// Unknown: nobody saw how the pod ended, because no leader watched.
	Unknown int `json:"unknown"`
	// Left: still there.
	Left int `json:"left"`
}

// Plus returns the sum of both.
func (c Counts) Plus(d Counts) Counts {
	return Counts{
		Evicted: c.Evicted + d.Evicted, Deleted: c.Deleted + d.Deleted, CutShort: c.CutShort + d.CutShort,
		Removed: c.Removed + d.Removed, Others: c.Others + d.Others, Finished: c.Finished + d.Finished,
		WithNode: c.WithNode + d.WithNode, Unknown: c.Unknown + d.Unknown, Left: c.Left + d.Left,
	}
}

// CutShort is a pod that got less than its grace period, or was deleted against a budget or do-not-disrupt.
type CutShort struct {
	Pod   string `json:"pod"`
	UID   string `json:"uid"`
	Owner string `json:"owner,omitempty"`
	// Reason is what refused the eviction, or why the grace period was cut.
	Reason string `json:"reason"`
	Budget string `json:"budget,omitempty"`
	// Given and Missing are seconds of the grace period. Missing is 0 for a pod that only its budget protected.
	Given   int64 `json:"given"`
	Missing int64 `json:"missing"`
}

// Left is a pod that is still there, and why.
type Left struct {
	Pod    string `json:"pod"`
	UID    string `json:"uid"`
	Reason string `json:"reason"`
	// Holder is the finalizer, the webhook or the answer that keeps the pod.
	Holder string `json:"holder,omitempty"`
}

// ReportVolume is a VolumeAttachment of the node.
type ReportVolume struct {
	Attachment string `json:"attachment"`
	Volume     string `json:"volume,omitempty"`
	State      string `json:"state"`
}
