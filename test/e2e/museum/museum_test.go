package museum

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// exhibit is one situation.
type exhibit struct {
	// number is that of the situation in the list, such as "01", or a letter for a healthy one.
	number string
	name   string
	// programs describes the programs that run, nil for none beside the mock driver. Exhibits
	// with the same programs share a cluster, unless alone.
	programs *harness.Setup
	// alone: the exhibit changes what others see, such as a Lease in kube-system.
	alone bool
	// build makes the situation and returns the arguments of "exeunt why".
	build func(r *room) []string

	verdict blocker.Verdict
	// roots are the reasons of root blockers, all of which have to be reported.
	roots []blocker.Reason
	// next is text that a next step of the report has to contain.
	next string
	// absent is text that no next step may contain, such as a force that is not called for.
	absent string
	// evidence are texts that the evidence of the report has to contain.
	evidence []string
	// step carries out the next step, and plays the programs that cannot run here. The object
	// has to go afterwards. nil for exhibits whose deletion was not requested.
	step func(r *room)
	// show replaces all of this for situations that one explanation by the program cannot show.
	show func(r *room)
}

// exhibits returns all exhibits.
func exhibits() []exhibit {
	return slices.Concat(
		deletingVolumes, keptVolumes, onlyProvisioners, detachedVolumes, uninstalledSnapshots, usedClaims, takenSnapshots, otherUses,
		nodePods, operators(), healthyOperators(), mixed(),
		foregroundDeletions(), namespaces(), refusals(), advised, reported,
	)
}

func TestExhibits(t *testing.T) {
	t.Cleanup(func() { writeRecord(t) })
	for _, e := range exhibits() {
		t.Run(e.number+" "+e.name, func(t *testing.T) {
			r := e.open(t)
			if e.show != nil {
				e.show(r)
				return
			}
			args := e.build(r)
			report := r.why(args...)
			e.expect(t, report)
			r.expectAdvice(report)
			if report.Verdict == blocker.Stuck {
				r.expectStuckOrUnknownWithoutRights(args)
			} else {
				r.expectNeverStuckWithoutRights(args)
			}
			if e.step != nil {
				e.step(r)
				r.awaitGone(args)
			}
		})
	}
}

// open returns the room of the exhibit.
func (e exhibit) open(t *testing.T) *room {
	t.Helper()
	setup := harness.Setup{NoPrograms: true}
	if e.programs != nil {
		setup = *e.programs
	}
	switch {
	case e.alone && setup.NoPrograms:
		return &room{Session: harness.Borrow(t, setup)}
	case e.alone:
		t.Parallel()
		return &room{Session: harness.Own(t, setup)}
	}
	return &room{Session: harness.Join(t, setup)}
}

// expect compares the report with what the exhibit says.
func (e exhibit) expect(t *testing.T, report blocker.Report) {
	t.Helper()
	var found []blocker.Reason
	var next []string
	for root := range blocker.Roots(report.Blockers) {
		found = append(found, root.Reason)
		next = append(next, root.Next)
		if root.Verdict != blocker.None && root.Next == "" {
			t.Errorf("%v of %v has no next step", root.Reason, root.Object)
		}
	}
	if report.Verdict != e.verdict {
		t.Errorf("the verdict is %v, want %v, in %+v", report.Verdict, e.verdict, report)
	}
	for _, want := range e.roots {
		if !slices.Contains(found, want) {
			t.Errorf("the root reasons are %v, want %v, in %+v", found, want, report)
		}
	}
	for _, want := range e.evidence {
		if text := evidenceOf(report); !strings.Contains(text, want) {
			t.Errorf("the evidence is %q, want %q in it", text, want)
		}
	}
	if text := strings.Join(next, "\n"); e.absent != "" && strings.Contains(text, e.absent) {
		t.Errorf("the next steps are %q, with %q among them", next, e.absent)
	}
	if !strings.Contains(strings.Join(next, "\n"), e.next) {
		t.Errorf("the next steps are %q, want %q among them", next, e.next)
	}
}

func TestEverySituationHasOneExhibit(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range exhibits() {
		if seen[e.number] {
			t.Errorf("exhibit %s is there twice", e.number)
		}
		seen[e.number] = true
	}
	for number := range 69 {
		if name := fmt.Sprintf("%02d", number+1); !seen[name] {
			t.Logf("exhibit %s is missing", name)
		}
	}
}
