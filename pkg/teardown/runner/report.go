package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/exeunt-io/exeunt/internal/answer"
	"github.com/exeunt-io/exeunt/pkg/alive"
	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/teardown"
)

// Report says what became of everything: what the record says of a complete teardown, else what is read now. It works
// after a crash, and for a teardown that another runner carries out.
func (r *Runner) Report(ctx context.Context) (*teardown.Document, error) {
	object, err := r.readAlive(ctx)
	if err != nil {
		return nil, err
	}
	if object == nil {
		return r.recordedReport(ctx)
	}
	recorded, err := r.loadRecord(ctx, string(object.UID))
	if err != nil {
		return nil, err
	}
	found, err := r.list(ctx, r.options(object))
	if err != nil {
		return nil, err
	}
	now := r.Clock.Now()
	found.SetParticipants(participantsOf(object, nil))
	found.Restore(append(recorded.unknown(), found.Unanswered(found.Lost(recorded.requests()))...))
	items := merged(recorded.items, found.Items(now))
	r.explainItems(ctx, items)
	document := r.document(object, teardown.Decision{Phase: teardown.Phase(object.Status.Phase),
		Reason: teardown.Reason(object.Status.Reason)}, items)
	document.Incomplete = append(document.Incomplete, recorded.lacking...)
	if object.IsStarted() && !recorded.planned {
		document.Incomplete = append(document.Incomplete, "the plan is lost: what is gone is not named")
	}
	return document, nil
}

// explainItems says of what is left why it remains.
func (r *Runner) explainItems(ctx context.Context, items []teardown.Item) {
	left := remainingOf(items)
	explained := r.explainAll(ctx, left[:min(alive.MaxRemaining, len(left))])
	for i := range items {
		item := &items[i]
		switch {
		case item.InUse: // it is kept, and the teardown waits until it is detached
		case item.Plan != teardown.PlanDelete || item.Fate != teardown.Planned:
			continue
		default:
			item.Fate = teardown.Remains
		}
		if known := explained[keyOf(item)]; len(known.blockers) > 0 {
			item.Blockers = known.blockers
		}
	}
}

// recordedReport returns the report of the record, whatever Alive it is of, and says if a later teardown has begun.
func (r *Runner) recordedReport(ctx context.Context) (*teardown.Document, error) {
	report, exists, err := answer.Get(ctx, reportName, r.Objects.CoreV1().ConfigMaps(Namespace).Get)
	if err != nil {
		return nil, fmt.Errorf("read the report: %w", err)
	}
	document := &teardown.Document{Problems: []teardown.Problem{}, Incomplete: []string{}, Items: []teardown.Item{}}
	if !exists {
		document.Incomplete = append(document.Incomplete, "there is no record of the teardown")
		document.Count()
		return document, nil
	}
	if err := json.Unmarshal([]byte(report.Data[documentKey]), document); err != nil {
		document.Incomplete = append(document.Incomplete, "the record of the teardown was edited: "+err.Error())
	}
	items, lacking, err := r.recordedItems(ctx, report.Annotations[ofAlive], document.Totals)
	if err != nil {
		return nil, err
	}
	document.Items, document.Incomplete = items, append(document.Incomplete, lacking...)
	last, err := r.lastAlive(ctx)
	if err != nil {
		return nil, err
	}
	if string(last) != report.Annotations[ofAlive] || last == "" {
		document.Incomplete = append(document.Incomplete, "this may be the record of an earlier teardown: "+
			"what the last one has deleted is not known")
	}
	document.Count()
	return document, nil
}

// recordedItems returns the items of the report, and what it lacks of those that its totals count.
func (r *Runner) recordedItems(ctx context.Context, uid string, totals map[teardown.Kind]teardown.Totals) (
	items []teardown.Item, lacking []string, err error) {
	maps, err := r.recordMaps(ctx)
	if err != nil {
		return nil, nil, err
	}
	counted, parts := 0, map[int]bool{}
	for _, of := range totals {
		counted += of.Delete + of.Keep
	}
	items = []teardown.Item{}
	for _, one := range maps {
		text, isItems := strings.CutPrefix(one.Name, reportName+"-")
		number, err := strconv.Atoi(text)
		if !isItems || err != nil || one.Annotations[ofAlive] != uid {
			continue
		}
		parts[number] = true
		chunk, err := unpack(one.BinaryData[itemsKey])
		if err != nil {
			lacking = append(lacking, fmt.Sprintf("ConfigMap %s was edited: %v", one.Name, err))
		}
		items = append(items, chunk...)
	}
	for number := range (counted + maxItems - 1) / maxItems {
		if !parts[number] {
			lacking = append(lacking, fmt.Sprintf("ConfigMap %s-%d of the report is lost", reportName, number))
		}
	}
	if len(items) != counted && len(lacking) == 0 {
		lacking = append(lacking, fmt.Sprintf("the report was edited: it counts %d items and names %d", counted, len(items)))
	}
	return items, lacking, nil
}

// Stuck reports whether all that remains is stuck by evidence: waiting longer does not help.
func Stuck(document *teardown.Document) bool {
	stuck := false
	for i := range document.Items {
		item := &document.Items[i]
		if !item.Awaited() {
			continue
		}
		if item.Fate != teardown.Remains && !item.InUse || blocker.Worst(item.Blockers) != blocker.Stuck {
			return false
		}
		stuck = true
	}
	return stuck && len(document.Incomplete) == 0
}
