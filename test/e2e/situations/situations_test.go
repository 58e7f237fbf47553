package situations

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// situation is one situation.
type situation struct {
	// number is that of the situation in the list, such as "01", or a letter for a healthy one.
	number string
	name   string
	// programs describes the programs that run, nil for none beside the mock driver. Situations
	// with the same programs share a cluster, unless alone.
	programs *harness.Setup
	// alone: the situation changes what others see, such as a Lease in kube-system.
	alone bool
	// build makes the situation and returns the arguments of "exeunt why".
	build func(r *place) []string

	verdict blocker.Verdict
	// roots are the reasons of root blockers, all of which have to be reported.
	roots []blocker.Reason
	// next is text that a next step of the report has to contain.
	next string
	// absent is text that no next step may contain, such as a force that is not called for.
	absent string
	// evidence are texts that the evidence of the report has to contain.
	evidence []string
	// printed are texts that the program has to print.
	printed []string
	// step carries out the next step, and plays the programs that cannot run here. The object
	// has to go afterwards. nil for situations whose deletion was not requested.
	step func(r *place)
	// show replaces all of this for situations that one explanation by the program cannot show.
	show func(r *place)
}

// situations returns all situations.
func situations() []situation {
	return slices.Concat(
		deletingVolumes, keptVolumes, onlyProvisioners, detachedVolumes, uninstalledSnapshots, usedClaims, takenSnapshots,
		otherUses,
		nodePods, operators(), healthyOperators(), mixed(),
		foregroundDeletions(), namespaces(), refusals(), advised, reported,
		inGrace, terminations, teardowns,
	)
}

func TestSituations(t *testing.T) {
	t.Cleanup(func() { writeRecord(t) })
	for _, e := range situations() {
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
			r.expectPrinted(args, e.printed)
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

// open returns the place of the situation.
func (e situation) open(t *testing.T) *place {
	t.Helper()
	setup := harness.Setup{NoPrograms: true}
	if e.programs != nil {
		setup = *e.programs
	}
	switch {
	case e.alone && setup.NoPrograms:
		return &place{Session: harness.Borrow(t, setup)}
	case e.alone:
		t.Parallel()
		return &place{Session: harness.Own(t, setup)}
	}
	return &place{Session: harness.Join(t, setup)}
}

// expect compares the report with what the situation says.
func (e situation) expect(t *testing.T, report blocker.Report) {
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

// expectPrinted wants the texts in what the program prints.
func (r *place) expectPrinted(args, texts []string) {
	r.T.Helper()
	if len(texts) == 0 {
		return
	}
	stdout, stderr, _ := r.run(append([]string{"why", "-o", "wide", "-n", r.Namespace}, args...)...)
	for _, text := range texts {
		if !strings.Contains(stdout, text) {
			r.T.Errorf("exeunt why %v printed %s and %q, want %q", args, stdout, stderr, text)
		}
	}
}

func TestEveryNumberHasOneSituation(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range situations() {
		if seen[e.number] {
			t.Errorf("situation %s is there twice", e.number)
		}
		seen[e.number] = true
	}
	for number := range 70 {
		if name := fmt.Sprintf("%02d", number+1); !seen[name] {
			t.Logf("situation %s is missing", name)
		}
	}
}
