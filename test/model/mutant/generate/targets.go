package main

// target is a package that is mutated. Its guards are left out in every function.
type target struct {
	folder string
	// shell: only the listed functions decide; otherwise all except the listed ones.
	shell     bool
	functions []string
	// leaveOut are files of a core package that decide nothing about the model's programs.
	leaveOut []string
}

var targets = []target{
	{folder: "pkg/binding", functions: []string{"ReportDelay"}, leaveOut: []string{"bucket.go", "index.go"}},
	{folder: "pkg/disk"},
	{folder: "pkg/finalizer"},
	{folder: "pkg/journal", leaveOut: []string{"codec.go"}},
	{folder: "pkg/patch"},
	{folder: "pkg/protection"},
	{folder: "pkg/provision", leaveOut: []string{"clone.go", "input.go", "parameters.go", "refusal.go", "request.go", "response.go", "secrets.go", "snapshot.go", "source.go", "template.go", "needs.go"}},
	{folder: "pkg/reclaim"},
	{folder: "pkg/reclaim/external"},
	{folder: "pkg/reclaim/plugin"},
	{folder: "pkg/storage"},
	{folder: "pkg/controller", shell: true, functions: []string{"LiveVolume", "LiveClaim", "RecordWrite", "IsFresh", "wrote"}},
	{folder: "pkg/provisioner/deletion", shell: true, functions: []string{"stateOf", "owns", "isAttached", "removeEntry", "deleteObject", "forgetDeleted", "VolumesOnDisk"}},
	{folder: "pkg/provisioner/journalstore", shell: true, functions: []string{"isUnread", "reread", "checkStored", "revert", "recordCommit", "takeOver", "checkTerm"}},
	{folder: "pkg/provisioner/provisioning", shell: true, functions: []string{
		"stateOf", "isFresh", "isOverdue", "isAwaited", "serverOf", "wantOf", "isForOther", "mayBuildAnew", "recordOf", "entryOf",
		"isRefused", "isLongRequested", "isRecorded", "checkHandle", "recordResult", "recordVolumeEvent", "mayBeKept", "announce", "notWritten", "inherit", "readClaim", "orOlderPlan", "useStored",
	}},
	{folder: "pkg/pvcontroller/claim", shell: true, functions: []string{
		"observe", "volumeOf", "volumeFor", "needsVolume", "relationOf", "bindCompleted", "observeClass", "observeMigration", "delaysBinding",
	}},
	{folder: "pkg/pvcontroller/protection", shell: true, functions: []string{"Reconcile", "claimChanged", "podChanged", "podGone"}},
	{folder: "pkg/pvcontroller/pvwriter", shell: true},
	{folder: "pkg/pvcontroller/volume", shell: true, functions: []string{"phaseState", "claimOfProtected", "needsNoWrite", "phaseChange", "enqueueProtection"}},
}

// windowTargets are the decisions of exeunt delete. It has no model, as those below.
var windowTargets = []target{{folder: "pkg/patch", shell: true}, {folder: "pkg/window", shell: true, functions: []string{
	"Decide", "decide", "changes", "decideLive", "decideSent", "observe", "isExposed", "windowOf", "startOf", "existing", "isWritten",
}}}

// The decisions on graceful deletion, and what reads and stores a deadline. Their modules have no model: the unit tests
// have to kill every mutant.
var (
	gracefulTargets  = []target{{folder: "."}, {folder: "deadline"}}
	nodesTargets     = []target{{folder: "pkg/deadline"}, {folder: "pkg/termination", leaveOut: []string{"report.go"}}, {folder: "pkg/termination/disruption"}, {folder: "pkg/termination/node"}, {folder: "pkg/termination/pod"}}
	apiserverTargets = []target{{folder: "internal/gracestorage"}, {folder: "internal/window"}}
)
