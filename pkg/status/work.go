package status

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/exeunt-io/exeunt/internal/enum"
	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/families"
)

// work says whether a program does the work of a loop or of a provisioner.
type work int

const (
	// workUnseen: nothing shows whether a program does it, as on managed control planes.
	workUnseen work = iota
	// workDone: a program that does it was seen.
	workDone
	// workUndone: no program does it.
	workUndone
	// workStandsBy: no program does it, and pv-controller waits for the standby Lease.
	workStandsBy
	// workIdle: pods of the program are ready, and none of them leads.
	workIdle
	// workDoubtful: pv-controller waits for the standby Lease, and nothing shows whether kube-controller-manager does it.
	workDoubtful
)

// String returns the name of the value.
func (w work) String() string {
	return enum.Name(w, "unseen", "done", "undone", "stands by", "idle", "doubtful")
}

// workState is what was seen of the programs that may do a work.
type workState struct {
	// Verdict says whether one of them will act.
	Verdict blocker.Verdict
	// StandsBy: replicas of pv-controller wait for the standby Lease.
	StandsBy bool
	// Idle: replicas are ready, and their Lease has run out twice over.
	Idle bool
	// Wrote: kube-controller-manager, whose Lease has run out, wrote after that: it runs without the Lease.
	Wrote bool
}

// workOf decides whether a program does the work.
func workOf(s workState) work {
	switch {
	case s.Verdict <= blocker.Waiting:
		return workDone
	case s.Verdict == blocker.Stuck && !s.Wrote && s.StandsBy:
		return workStandsBy
	case s.Verdict == blocker.Stuck && !s.Wrote:
		return workUndone
	case s.StandsBy:
		return workDoubtful
	case s.Idle && !s.Wrote:
		return workIdle
	}
	return workUnseen
}

// loopFamilies are the families of the finalizers that the three loops remove, one for each loop.
func loopFamilies() []families.Family {
	var all []families.Family
	for _, of := range []struct {
		name finalizer.Name
		kind string
	}{{finalizer.InTree, "PersistentVolume"}, {finalizer.VolumeProtection, "PersistentVolume"},
		{finalizer.ClaimProtection, "PersistentVolumeClaim"}} {
		if family, known := families.Find(string(of.name), of.kind, ""); known {
			all = append(all, family)
		}
	}
	return all
}

// addLoops adds who runs the loops for volumes and claims.
func (s *survey) addLoops(ctx context.Context) {
	writers := writersOf(slices.Collect(maps.Values(s.writes)), s.Reader.Now())
	s.report.Loops = Loops{Writers: writers.String(), Evidence: writers.evidence()}
	found := map[work][]string{}
	for _, family := range loopFamilies() {
		finding := s.finder.LookAll(ctx, family.Controllers(), "")
		_, verdict := blocker.JudgeController(finding.State)
		state := workOf(workState{Verdict: verdict, StandsBy: finding.StandsBy, Idle: finding.State.IsIdle(),
			Wrote: s.upstreamWroteAfter(finding.Since)})
		found[state] = append(found[state], family.Controller.Loops[0])
		if !slices.Contains(family.Finalizers, string(finalizer.VolumeProtection)) { // one loop stands for the three
			continue
		}
		for _, evidence := range finding.Evidence {
			s.report.Loops.Evidence = append(s.report.Loops.Evidence, evidence.Text)
		}
	}
	if running := len(found[workDone]) + len(found[workUnseen]); writers == writersBoth &&
		running == len(loopFamilies()) { // else one set has ended
		s.report.find("two sets of loops work at once: switch the three loops of kube-controller-manager off, or stop pv-controller")
	}
	s.judgeLoops(found)
}

// judgeLoops adds the loops that no program runs.
func (s *survey) judgeLoops(found map[work][]string) {
	release := s.Commands.Kubectl(cluster.ControlPlane, "delete", "lease", cluster.PVControllerLease)
	if loops := found[workUndone]; len(loops) > 0 {
		s.report.find("no program runs %s: start pv-controller, or switch them on in kube-controller-manager",
			strings.Join(loops, ", "))
	}
	if loops := found[workStandsBy]; len(loops) > 0 {
		s.report.find("no program runs %s: a Lease keeps pv-controller on standby. Delete it:\n%s", strings.Join(loops, ", "),
			release)
	}
	if loops := found[workIdle]; len(loops) > 0 {
		s.report.find("no program leads that runs %s: its pods are ready, but its leader Lease has run out",
			strings.Join(loops, ", "))
	}
	if loops := found[workDoubtful]; len(loops) > 0 {
		s.Reader.Note("a Lease keeps pv-controller on standby, and whether kube-controller-manager runs %s was not seen. Once these are switched off, delete the Lease:\n%s",
			strings.Join(loops, ", "), release)
	}
}

// upstreamWroteAfter reports whether kube-controller-manager wrote a phase after the time in RFC 3339, "" for never.
func (s *survey) upstreamWroteAfter(since string) bool {
	at, err := time.Parse(time.RFC3339, since)
	for _, write := range s.writes {
		if err == nil && !write.ours && write.at.After(at) {
			return true
		}
	}
	return false
}
