package forecast

// First says when a pod may go.
type First string

// The values of First. Each but AtTime has its own condition; a time is in the field firstTime where it is known.
const (
	AtOnce        First = "atOnce"
	AfterBudget   First = "afterBudget"
	AfterOrdinary First = "afterOrdinaryPods"
	AfterOthers   First = "afterAllOthers"
	WithNamespace First = "withNamespace"
	AtTime        First = "atTime"
	AtL           First = "atL"
	AtP           First = "atP"
	Ending        First = "ending"
	Stays         First = "stays"
	Never         First = "never"
)

// Firsts are all values of First.
var Firsts = []First{AtOnce, AfterBudget, AfterOrdinary, AfterOthers, WithNamespace, AtTime, AtL, AtP, Ending, Stays,
	Never}

// Report is the forecast for one node. Times are in RFC 3339, "" without a deadline.
type Report struct {
	Node string `json:"node"`
	UID  string `json:"uid"`
	// Now is the time of the forecast, by the clock of the API server.
	Now string `json:"now"`
	// Terminating: the node is being deleted. Its deadline is that of the deletion.
	Terminating bool `json:"terminating"`
	// Requested is R, "" for a node that is not being deleted.
	Requested string `json:"requested"`
	// Period is T, "Never" without a deadline; PeriodFrom says where it was read, "" if nothing names one.
	Period     string `json:"period"`
	PeriodFrom string `json:"periodFrom"`
	// Deadline is D, GraceEnds is P, Stop is E.
	Deadline  string `json:"deadline"`
	GraceEnds string `json:"graceEnds"`
	Stop      string `json:"stop"`
	// Late: no time is left for grace periods. Each pod gets one second.
	Late bool `json:"late"`
	// CutShort is the number of pods that would miss something.
	CutShort int    `json:"cutShort"`
	Pods     []Pod  `json:"pods"`
	Disks    []Disk `json:"disks"`
	// Notes are sentences about the node.
	Notes []string `json:"notes"`
	// Incomplete names what could not be read, and which right would allow to read it.
	Incomplete []string `json:"incomplete"`
}

// Pod is the forecast for one pod.
type Pod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
	// Owner is the controller, as Kind/name, "" without one.
	Owner string `json:"owner"`
	// Kind is "Ordinary", "Critical", "Daemon" or "Mirror".
	Kind         string `json:"kind"`
	GraceSeconds int64  `json:"graceSeconds"`
	First        First  `json:"first"`
	FirstTime    string `json:"firstTime"`
	// Forced is L, "" without a deadline, and for a pod that nobody ends.
	Forced   string    `json:"forced"`
	Blockers []Blocker `json:"blockers"`
	Misses   Misses    `json:"misses"`
	// Losses are what does not come back.
	Losses []Loss `json:"losses"`
}

// Blocker is what keeps a pod, or its object.
type Blocker struct {
	// Reason is that of package termination/pod, such as BudgetBlocks.
	Reason string `json:"reason"`
	// Object names what blocks, "" if it is the pod itself.
	Object string `json:"object"`
	Text   string `json:"text"`
}

// Misses is what a pod would miss. The zero value is nothing.
type Misses struct {
	// GraceSeconds are the seconds of the grace period that the pod does not get.
	GraceSeconds int64 `json:"graceSeconds"`
	// Against names the budgets and the annotation against which the pod is deleted at L, unless they allow it before.
	Against []string `json:"against"`
}

// any reports whether the pod misses something.
func (m Misses) any() bool { return m.GraceSeconds > 0 || len(m.Against) > 0 }

// Loss is something that does not come back.
type Loss struct {
	// Kind is "noOwner", "frozen", "emptyDir" or "localVolume".
	Kind string `json:"kind"`
	Text string `json:"text"`
}

// Disk is an attachment of a volume to the node.
type Disk struct {
	Attachment string `json:"attachment"`
	// Volume is the PersistentVolume, "" for an inline volume.
	Volume   string `json:"volume"`
	Inline   bool   `json:"inline"`
	Attached bool   `json:"attached"`
	// Pods use the volume, as namespace/name.
	Pods []string `json:"pods"`
	// Awaited: the node waits until the volume is detached.
	Awaited bool   `json:"awaited"`
	Text    string `json:"text"`
}
