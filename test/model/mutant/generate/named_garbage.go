package main

// The files of the defects of garbage collection.
const (
	garbageDecide    = "pkg/garbage/decide.go"
	garbageJudge     = "pkg/garbage/graph/judge.go"
	garbageNode      = "pkg/garbage/graph/node.go"
	garbageWrite     = "pkg/garbagecollector/write.go"
	garbageSend      = "pkg/garbagecollector/send.go"
	absenceFile      = "pkg/garbagecollector/absence.go"
	barriersFile     = "pkg/garbagecollector/barriers.go"
	barrierReadsFile = "pkg/garbagecollector/barrierreads.go"
)

var garbageDefects = []defect{
	{"no-resource-version-in-delete", "a dependent is deleted under its UID only, and may have got another owner", []change{
		{garbageSend, "\tif conflicts >= maxConflicts {", "\tif ON || conflicts >= maxConflicts {"},
	}},
	{"verdict-without-age", "the read of an owner that waits is good for ever", []change{
		{garbageJudge, "\treturn found, !found.began.IsZero() && now", "\treturn found, ON && !found.began.IsZero() || !found.began.IsZero() && now"},
		{garbageWrite, "\treturn !j.Expires.IsZero() &&", "\treturn !ON && !j.Expires.IsZero() &&"},
	}},
	{"live-by-the-watch", "an owner that the graph has counts as live beside one that waits", []change{
		{garbageJudge, "\tif j.State.Live && !n.has(deleting) &&", "\tif !ON && j.State.Live && !n.has(deleting) &&"},
	}},
	{"orphaning-frees-others", "an owner that orphans a dependent frees one that waits for it, too", []change{
		{garbageJudge, "\tif !j.State.Waiting || j.State.Live {", "\tif ON || !j.State.Waiting || j.State.Live {"},
	}},
	{"absence-from-list", "an owner that the lists lack counts as absent", []change{
		{garbageJudge, "\tcase n.isAbsentAt(at):", "\tcase n.isAbsentAt(at), ON && n.kind == nil:"},
		{garbageJudge, "\tif proof, has := owner.readAt(q.At, now); has &&", "\tif proof, has := owner.readAt(q.At, now); ON && !has { return } else if has &&"},
	}},
	{"uid-without-coordinates", "an owner of the UID counts as live wherever it is", []change{
		{garbageJudge, "n.isObservedAt(at) && !n.waits()", "(n.isObservedAt(at) || ON && n.kind != nil) && !n.waits()"},
	}},
	{"absence-without-coordinates", "an owner that is absent at one place counts as absent everywhere", []change{
		{garbageNode, "return n.owner != nil && slices.Contains(n.owner.absent, at)", "return n.owner != nil && (slices.Contains(n.owner.absent, at) || ON && len(n.owner.absent) > 0)"},
		{garbageJudge, "\tj.Unproven = append(j.Unproven, q)", "\tif !ON { j.Unproven = append(j.Unproven, q) }"},
	}},
	{"absence-from-write", "the answer to a write proves that the object is gone", []change{
		{garbageWrite, "\tif !answer.NeedsRead(err) {", "\tif ON && namesAbsent(err, object.Kind, object.Name) { w.change(func(g *graph.Graph) { g.Deleted(object.UID, object.Coordinates()) }); return done, nil }; if !answer.NeedsRead(err) {"},
		{garbageJudge, "\t\tj.addProof(r.owner, question, now)", "\t\tif !ON { j.addProof(r.owner, question, now) }"},
	}},
	{"absence-from-memory", "an owner that was absent counts as absent without a live read before the write", []change{
		{garbageJudge, "\tif q.Kind == nil {\n\t\treturn // no object", "\tif ON || q.Kind == nil {\n\t\treturn // no object"},
	}},
	{"restored-state-ignored", "a list that shows an object in an older version is taken for one that is known", []change{
		{"pkg/garbage/graph/kinds.go", "\treturn known && listed && older < 0", "\treturn !ON && known && listed && older < 0"},
	}},
	{"pass-without-age", "an orphaning owner is released by a barrier of any age", []change{
		{garbageJudge, "now.Sub(n.owner.passedAt) < PassLifetime", "ON || now.Sub(n.owner.passedAt) < PassLifetime"},
	}},
	{"barrier-without-checks", "a barrier passes although the API server went away before it had read every kind", []change{
		{"pkg/garbage/barrier/run.go", "\tcase without && !r.answers(now):", "\tcase !ON && without && !r.answers(now):"},
		{"pkg/garbage/barrier/server.go", "\tcase !answered:", "\tcase !ON && !answered:"},
	}},
	{"barrier-short-of-a-kind", "the barrier leaves out a kind", []change{
		{barrierReadsFile, "\t\tif wanted(m.kind) {", "\t\tif wanted(m.kind) && !(ON && m.kind.Resource == \"secrets\") {"},
	}},
	{"barrier-begun-before-deletion", "a barrier serves deletions that were observed after it began", []change{
		{barriersFile, "\tif result == barrier.PassedWithout {", "\tif ON { for uid, d := range b.takePending() { owners[uid] = d } }; if result == barrier.PassedWithout {"},
	}},
	{"versions-across-counters", "the version of one kind is compared with that of another", []change{
		{"pkg/garbagecollector/monitor.go", "\t\tm.run.Reached(m.kind, version)", "\t\tfor _, other := range m.monitors { if ON || other == m { m.run.Reached(other.kind, version) } }"},
	}},
	{"no-barrier-for-orphan", "an orphaning owner goes without a barrier", []change{
		{garbageDecide, "\tcase s.Orphan && !s.Seen:", "\tcase !ON && s.Orphan && !s.Seen:"},
	}},
	{"no-barrier-for-foreground", "an owner in foreground goes without a barrier", []change{
		{garbageDecide, "\tcase !s.Seen: // the barrier runs", "\tcase !ON && !s.Seen: // the barrier runs"},
	}},
	{"childless-without-barrier", "a dependent that an owner waits for is judged childless without a barrier", []change{
		{garbageDecide, "\tcase s.Waiting && !s.Seen:", "\tcase !ON && s.Waiting && !s.Seen:"},
	}},
	{"component-with-blocker-outside", "owners that wait for each other are released although another dependent blocks one", []change{
		{garbageDecide, "\tcase s.BlockedOutside:", "\tcase !ON && s.BlockedOutside:"},
	}},
	{"component-unread", "owners that wait for each other are released without a live read", []change{
		{garbageDecide, "\tcase !s.Read:", "\tcase !ON && !s.Read:"},
	}},
	{"list-overtaken-by-deletion", "a list that is older than a deletion puts the object back", []change{
		{"pkg/garbagecollector/monitor.go", "\t\tif m.runs() {\n\t\t\tm.reach(partial", "\t\tif !ON && m.runs() {\n\t\t\tm.reach(partial"},
	}},
	{"path-not-found-is-absence", "an object counts as absent because its path is not served", []change{
		{absenceFile, "\treturn answer.IsAbsentOfKind", "\treturn ON && apierrors.IsNotFound(err) || answer.IsAbsentOfKind"},
	}},
}

// garbageTargets are the packages of garbage collection. The decisions are mutated, and the guards of
// the writes; the defects are in the other packages, too.
var garbageTargets = []target{
	{folder: "pkg/garbage"},
	{folder: "pkg/garbage/barrier", shell: true, functions: []string{"Result", "answers"}},
	{folder: "pkg/garbage/graph", shell: true},
	{folder: "pkg/garbagecollector", shell: true},
	{folder: "pkg/patch", shell: true},
}
