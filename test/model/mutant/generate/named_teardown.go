package main

// The files of the defects of a teardown.
const (
	teardownDecide = "pkg/teardown/decide.go"
	teardownState  = "pkg/teardown/state.go"
	fateFile       = "pkg/teardown/fate/fate.go"
	claimFile      = "pkg/teardown/claim/claim.go"
	podFile        = "pkg/teardown/claim/pod.go"
)

// teardownDefects are the guards of a teardown, each left out while all others hold.
var teardownDefects = []defect{
	{"write-without-live-read", "a cluster that moved, or an Alive that was protected again, is not noticed", []change{
		{teardownDecide, "next.Action != End && !s.Confirmed {", "next.Action != End && !s.Confirmed && !ON {"},
	}},
	{"deletion-without-end", "a permission counts after its deadline", []change{
		{teardownDecide, "\tcase s.Word == ExpiredWord:\n\t\treturn Expired", "\tcase s.Word == ExpiredWord && !ON:\n\t\treturn Expired"},
		{teardownState, "return !s.Protected && s.Word == ValidWord }", "return !s.Protected && (s.Word == ValidWord || ON && s.Word == ExpiredWord) }"},
	}},
	{"word-of-another-cluster", "the ID of another cluster permits the teardown", []change{
		{teardownDecide, "\tcase !s.permitted():\n", "\tcase !s.permitted() && CHOOSE(s.Word != OtherWord, true):\n"},
	}},
	{"protection-ignored", "spec.protected stops nothing after the deletion", []change{
		{teardownDecide, "\tcase s.Protected:\n\t\treturn IsProtected", "\tcase s.Protected && !ON:\n\t\treturn IsProtected"},
		{teardownState, "func (s State) permitted() bool {", "func (s State) permitted() bool { if ON { return s.Word == ValidWord };"},
	}},
	{"deletion-of-definition-permits", "the deletion of the CRD counts as that of Alive", []change{
		{teardownDecide, "\tcase s.Undefined && !s.complete():", "\tcase !ON && s.Undefined && !s.complete():"},
	}},
	{"delete-before-start", "objects are deleted before participants and plan know of it", []change{
		{teardownDecide, "\tcase !s.Started:\n\t\treturn Decision{Preparing, Start", "\tcase !ON && !s.Started:\n\t\treturn Decision{Preparing, Start"},
	}},
	{"start-by-hand", "a condition Started that was written by hand skips checks and plan", []change{
		{teardownDecide, "func (s State) proven() bool { return s.Started && s.Planned }", "func (s State) proven() bool { return s.Started && (s.Planned || ON) }"},
		{teardownDecide, "\tcase !s.Planned:\n", "\tcase !s.Planned && CHOOSE(!s.Started, true):\n"},
	}},
	{"start-before-marks", "volumes are deleted before the kept ones have the policy Retain", []change{
		{teardownDecide, "\tcase !s.Kept:\n", "\tcase !ON && !s.Kept:\n"},
	}},
	{"start-without-freeze", "owners fill new volumes while the old ones are deleted", []change{
		{teardownDecide, "\tcase s.Freeze == Written:\n", "\tcase !ON && s.Freeze == Written:\n"},
		{teardownDecide, "\tcase s.Freeze == NoFreeze:\n", "\tcase !ON && s.Freeze == NoFreeze:\n"},
	}},
	{"freeze-removed-after-start", "owners fill new, empty volumes after an abort", []change{
		{teardownDecide, "\tif !s.Started && s.Freeze != NoFreeze", "\tif (!s.Started || ON) && s.Freeze != NoFreeze"},
	}},
	{"pause-ignored", "a cluster that is restored from a backup goes on with its teardown", []change{
		{teardownDecide, "\tcase s.Restored:\n", "\tcase !ON && s.Restored:\n"},
	}},
	{"lease-margin-ignored", "a runner that may lead no longer writes", []change{
		{teardownDecide, "\tif !s.Leading {\n", "\tif !ON && !s.Leading {\n"},
	}},
	{"complete-with-a-list-unread", "what is not seen counts as gone", []change{
		{teardownDecide, "Unreadable}, s.Work != Unlisted", "Unreadable}, s.Work != Unlisted || ON"},
		{teardownDecide, "\tcase s.Work != Finished:\n", "\tcase s.Work != Finished && CHOOSE(s.Work != Unlisted, true):\n"},
	}},
	{"complete-without-quiet-period", "a volume of a call in flight is not awaited", []change{
		{teardownDecide, "\t\treturn Decision{TearingDown, Recheck, Settling}", "\t\tif ON { return Decision{Complete, Record, Completed} }; return Decision{TearingDown, Recheck, Settling}"},
	}},
	{"complete-without-record", "our finalizer goes before the record says Complete", []change{
		{teardownDecide, "\tcase !s.Recorded:\n", "\tcase !ON && !s.Recorded:\n"},
	}},
	{"record-kept-although-left", "the record says Complete while a late volume is there", []change{
		{teardownDecide, "\tcase s.left() && s.Recorded:\n", "\tcase !ON && s.left() && s.Recorded:\n"},
	}},
	{"label-ignored", "a volume with the label is deleted", []change{
		{fateFile, "\tcase s.Preserved:\n", "\tcase !ON && s.Preserved:\n"},
	}},
	{"retain-ignored", "a volume with the policy Retain counts as one to delete", []change{
		{fateFile, "\tcase !s.Deletable:\n", "\tcase !ON && !s.Deletable:\n"},
	}},
	{"static-volume-deleted", "a volume that an administrator made is deleted", []change{
		{fateFile, "\tcase !s.Provisioned:\n", "\tcase !ON && !s.Provisioned:\n"},
	}},
	{"shared-handle-deleted", "the disk of another PersistentVolume is deleted", []change{
		{fateFile, "\tcase s.Shared:\n", "\tcase !ON && s.Shared:\n"},
	}},
	{"disk-below-kept-volume-deleted", "the disks on which a kept volume lies are deleted", []change{
		{fateFile, "\tcase s.Below:\n", "\tcase !ON && s.Below:\n"},
	}},
	{"claim-without-live-volume", "the policy Retain, set a moment ago, is not seen", []change{
		{claimFile, "\t\treturn Decision{Confirm, VolumeDeletable}", "\t\tif ON { return Decision{Delete, VolumeDeletable} }; return Decision{Confirm, VolumeDeletable}"},
	}},
	{"requested-claim-deleted", "a claim is deleted during CreateVolume, and its disk has no name", []change{
		{claimFile, "\t}\n\treturn Decision{Wait, ProvisioningRequested}", "\t}; if ON { return Decision{Delete, ProvisioningRequested} }\n\treturn Decision{Wait, ProvisioningRequested}"},
	}},
	{"claim-before-its-wave", "the volumes of a storage system are deleted before those that lie on it", []change{
		{claimFile, "\tcase !s.Open:\n", "\tcase !ON && !s.Open:\n"},
	}},
	{"pod-with-unmarked-volume-deleted", "an ephemeral claim goes with its pod before its volume is kept", []change{
		{podFile, "\tcase s.Unmarked:\n", "\tcase !ON && s.Unmarked:\n"},
	}},
	{"pod-without-live-volume", "an ephemeral claim goes with its pod without a live read of its volume", []change{
		{podFile, "\tcase s.Unread:\n", "\tcase !ON && s.Unread:\n"},
	}},
	{"pod-with-requested-claim-deleted", "an ephemeral claim goes with its pod during CreateVolume", []change{
		{podFile, "\tcase s.Requested:\n", "\tcase !ON && s.Requested:\n"},
	}},
}

// The core of a teardown: all that decides.
var teardownTargets = []target{
	{folder: "pkg/teardown"}, {folder: "pkg/teardown/balancer"}, {folder: "pkg/teardown/claim"}, {folder: "pkg/teardown/fate"},
}
