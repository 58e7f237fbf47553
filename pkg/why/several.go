package why

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// Answer is the report of an object, or why the object could not be read.
type Answer struct {
	Ref    cluster.Ref
	Report blocker.Report
	Err    error
}

// Several explains several objects, eight at a time, and returns the answers in their order.
func (e *Explorer) Several(ctx context.Context, refs []cluster.Ref) []Answer {
	answers := make([]Answer, len(refs))
	var work errgroup.Group
	work.SetLimit(parallel)
	for i, ref := range refs {
		work.Go(func() error {
			report, err := e.Explain(ctx, ref)
			answers[i] = Answer{ref, report, err}
			return nil
		})
	}
	_ = work.Wait() // errors are in the answers
	return answers
}

// explainAll explains the candidates, of very many a sample of each likeness. What could not be read for one of
// them belongs to the survey: the explanations share what was read.
func (e *Explorer) explainAll(ctx context.Context, found []candidate) []waitingItem {
	slices.SortFunc(found, func(a, b candidate) int { return a.since.Compare(b.since) })
	chosen := sample(found, maxExplained)
	refs := make([]cluster.Ref, len(chosen))
	for i, at := range chosen {
		refs[i] = found[at].ref
	}
	var items []waitingItem
	explained, all, seen := map[int]bool{}, map[likeness]int{}, map[likeness]*causes{}
	for _, one := range found {
		all[one.likeness]++
		seen[one.likeness] = &causes{}
	}
	for i, answer := range e.Several(ctx, refs) {
		one := found[chosen[i]]
		explained[chosen[i]] = true
		if report := answer.report(one); report.Verdict >= blocker.Waiting {
			if answer.Err == nil {
				report.Incomplete = []string{}
			}
			report.Since = blocker.Time(one.since)
			items = append(items, waitingItem{report, one.since})
			seen[one.likeness].add(report)
		}
	}
	for i, rest := range found {
		if !explained[i] {
			items = append(items, waitingItem{seen[rest.likeness].likely(rest, all[rest.likeness]), rest.since})
		}
	}
	return items
}

// report returns the report of the candidate: gone, if the object was recreated meanwhile.
func (a Answer) report(c candidate) blocker.Report {
	switch {
	case a.Err != nil:
		return c.unknown(fmt.Sprintf("could not read the object: %v", a.Err))
	case a.Report.Object.UID == "" && a.Report.Verdict != blocker.Gone: // the API server cannot read it
		a.Report.Object.UID = string(c.uid)
		return a.Report
	case a.Report.Object.UID != string(c.uid):
		return blocker.Report{Verdict: blocker.Gone}
	default:
		return a.Report
	}
}

// unknown returns the report of an object that was not explained.
func (c candidate) unknown(note string) blocker.Report {
	return blocker.Report{
		Object: blocker.Object{Kind: c.ref.Kind, Group: c.ref.Resource.Group, Namespace: c.ref.Namespace, Name: c.ref.Name,
			UID: string(c.uid)},
		Verdict: blocker.Unknown, Deadline: c.deadline, Incomplete: []string{note},
	}.Normalized()
}
