package runner

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applyv1 "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/exeunt-io/exeunt/internal/answer"
	"github.com/exeunt-io/exeunt/pkg/alive"
	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/teardown"
)

const (
	// planName and a number are the names of ConfigMaps with the items that were to be deleted or kept.
	planName = "exeunt-teardown-plan-"
	// reportName is the ConfigMap that says how the teardown ended; with a number it has items.
	reportName = teardown.ReportName
	// recordLabel selects the ConfigMaps of the record.
	recordLabel = alive.Group + "/record"
	// ofAlive is the annotation with the UID of the Alive that the record is of, inPhase that with its phase.
	ofAlive, inPhase = alive.Group + "/alive", teardown.PhaseAnnotation
	// maxItems is how many items one ConfigMap has: compressed, 2,000 of them are far below 1 MiB.
	maxItems = 2000
	// maxAdded is how many items a ConfigMap has to which more are added: outcomes come one by one.
	maxAdded = 200

	// lackingKey has what a plan that was saved again lacks.
	lackingKey = "lacking"
	planLost   = "the plan was lost, and is saved again: what was gone by then is not named"

	itemsKey, documentKey = "items.json.gz", teardown.DocumentKey
)

// readRecord reads the record of Alive live.
func (s *session) readRecord(ctx context.Context) error {
	found, err := s.loadRecord(ctx, string(s.uid))
	if err != nil {
		return err
	}
	s.record = found
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inventory.Restore(found.unknown())
	return nil
}

// loadRecord reads the record of the Alive with the UID.
func (r *Runner) loadRecord(ctx context.Context, uid string) (recording, error) {
	found := recording{saved: map[string]int{}}
	maps, err := r.recordMaps(ctx)
	if err != nil {
		return found, err
	}
	parts := map[int]bool{}
	for _, one := range maps {
		if one.Annotations[ofAlive] != uid {
			continue
		}
		if one.Name == reportName {
			found.complete = one.Annotations[inPhase] == string(teardown.Complete)
		}
		number, err := strconv.Atoi(strings.TrimPrefix(one.Name, planName))
		if err != nil || number < 0 || !strings.HasPrefix(one.Name, planName) {
			continue
		}
		items, err := unpack(one.BinaryData[itemsKey])
		if err != nil {
			found.lacking = append(found.lacking, fmt.Sprintf("ConfigMap %s was edited: %v", one.Name, err))
			items = nil
		}
		if text := one.Data[lackingKey]; text != "" {
			found.lacking = append(found.lacking, text)
		}
		parts[number] = true
		found.planned = found.planned || number == 0
		found.next = max(found.next, number+1)
		found.add(items)
	}
	for number := range found.next {
		if !parts[number] {
			found.lacking = append(found.lacking, "ConfigMap "+planName+strconv.Itoa(number)+" of the plan is lost")
		}
	}
	return found, nil
}

// recordMaps returns the ConfigMaps of all records.
func (r *Runner) recordMaps(ctx context.Context) ([]v1.ConfigMap, error) {
	maps, err := answer.CheckedList(r.Objects.CoreV1().ConfigMaps(Namespace).List(ctx,
		metav1.ListOptions{LabelSelector: recordLabel}))
	if err != nil {
		return nil, fmt.Errorf("read the record of the teardown: %w", err)
	}
	return maps.Items, nil
}

// savePlan saves what is to be deleted and kept. The first ConfigMap is written last: with it the plan is complete.
func (s *session) savePlan(ctx context.Context, v view) error {
	rest := v.items[min(maxItems, len(v.items)):]
	s.record.next = max(s.record.next, 1) // parts of a plan whose first part was lost stay
	if err := s.saveItems(ctx, rest); err != nil {
		return err
	}
	first := v.items[:min(maxItems, len(v.items))]
	packed, err := pack(first)
	if err != nil {
		return err
	}
	content := applyv1.ConfigMap(planName+"0", Namespace).WithBinaryData(map[string][]byte{itemsKey: packed})
	if object, _, _ := s.view(); object.IsStarted() {
		content.WithData(map[string]string{lackingKey: planLost})
		s.record.lacking = append(s.record.lacking, planLost)
	}
	if err := s.writeMap(ctx, content, ""); err != nil {
		return err
	}
	s.record.add(first)
	s.record.planned = true
	return nil
}

// saveNew saves the items that appeared after the plan before anything of them is deleted.
func (s *session) saveNew(ctx context.Context, v view) error {
	return s.saveItems(ctx, s.record.unsaved(v.items))
}

// saveOutcomes saves at once which claims went without an answer, which of these got their volume since, and which went
// after the answer that there is none. No object shows it to a report or to the next runner (#21, #60).
func (s *session) saveOutcomes(ctx context.Context, decision teardown.Decision, v view) error {
	silent := decision.Phase == teardown.NoPhase || decision.Action == teardown.End || !v.listed || !s.record.planned
	if silent || !s.term.Leading() {
		return nil
	}
	changed := s.record.outcomesOf(v.items, v.lost)
	if len(changed) == 0 {
		return nil
	}
	if s.confirmed == nil {
		if err := s.confirm(ctx); err != nil {
			return err
		}
	}
	if s.confirmed == nil {
		return errors.New("what became of claims is not saved: the cluster is another one, or Alive is gone")
	}
	return s.leading(func() error { return s.saveItems(ctx, changed) })
}

func (s *session) saveItems(ctx context.Context, items []teardown.Item) error {
	for chunk := range slices.Chunk(items, maxItems) {
		number, part := s.record.next, chunk
		if len(s.record.last) > 0 && len(s.record.last)+len(chunk) <= maxAdded {
			number, part = number-1, slices.Concat(s.record.last, chunk)
		}
		if err := s.writeItems(ctx, planName+strconv.Itoa(number), part); err != nil {
			return err
		}
		s.record.next, s.record.last = number+1, part
		s.record.add(chunk)
	}
	return nil
}

func (s *session) writeItems(ctx context.Context, name string, items []teardown.Item) error {
	packed, err := pack(items)
	if err != nil {
		return err
	}
	return s.writeMap(ctx, applyv1.ConfigMap(name, Namespace).WithBinaryData(map[string][]byte{itemsKey: packed}), "")
}

func (s *session) writeMap(ctx context.Context, content *applyv1.ConfigMapApplyConfiguration, phase teardown.Phase) error {
	content.WithLabels(map[string]string{recordLabel: "teardown"}).
		WithAnnotations(map[string]string{ofAlive: string(s.uid), inPhase: string(phase)})
	written, err := s.Objects.CoreV1().ConfigMaps(Namespace).Apply(ctx, content,
		metav1.ApplyOptions{FieldManager: "exeunt-teardown", Force: true})
	if err != nil {
		return fmt.Errorf("write the record of the teardown: %w", err)
	}
	if written.Name != *content.Name {
		return fmt.Errorf("write the record of the teardown: the API server answers with %q", written.Name)
	}
	return nil
}

// saveReport writes how far the teardown is: the items first, then the document, which says Complete or takes it back.
func (s *session) saveReport(ctx context.Context, decision teardown.Decision, v view) error {
	if err := s.saveNew(ctx, v); err != nil {
		return err
	}
	object, _, _ := s.view()
	document := s.document(object, decision, merged(s.record.items, v.items))
	document.Incomplete = append(document.Incomplete, s.record.lacking...)
	if decision.Phase == teardown.Complete {
		ended := s.Clock.Now().Truncate(time.Second)
		document.Ended = &ended
	}
	for i, chunk := range slices.Collect(slices.Chunk(document.Items, maxItems)) {
		if err := s.writeItems(ctx, fmt.Sprintf("%s-%d", reportName, i), chunk); err != nil {
			return err
		}
	}
	document.Items = nil
	text, err := json.Marshal(document)
	if err != nil {
		return err
	}
	err = s.writeMap(ctx, applyv1.ConfigMap(reportName, Namespace).WithData(map[string]string{documentKey: string(text)}),
		decision.Phase)
	if err == nil {
		s.record.complete = decision.Phase == teardown.Complete
	}
	return err
}

func keysOf(items []teardown.Item) map[string]bool {
	keys := make(map[string]bool, len(items))
	for i := range items {
		keys[keyOf(&items[i])] = true
	}
	return keys
}

// merged returns the items of the record with what became of them. What is kept has the reason of the record: its mark
// shows no other than that somebody preserved it.
func merged(saved, current []teardown.Item) []teardown.Item {
	all, here, others := slices.Clone(current), make(map[string]int, len(current)), namesOf(saved, current)
	for i := range all {
		here[keyOf(&all[i])] = i
	}
	for _, item := range saved {
		at, is := here[keyOf(&item)]
		switch {
		case is && item.Plan == teardown.PlanKeep && all[at].Plan == teardown.PlanKeep:
			all[at].Reason = item.Reason
			continue
		case is, others.have(&item):
			continue
		case item.Fate != teardown.Unknown:
			item.Fate = teardown.Gone
		}
		item.Blockers = []blocker.Blocker{}
		all = append(all, item)
	}
	slices.SortStableFunc(all, func(a, b teardown.Item) int {
		return strings.Compare(sortKey(&a), sortKey(&b))
	})
	return all
}

func sortKey(item *teardown.Item) string {
	return strings.Join([]string{string(item.Kind), item.Object.Namespace, item.Object.Name, item.Object.UID}, "/")
}

// document returns the report.
func (r *Runner) document(object *alive.Alive, decision teardown.Decision, items []teardown.Item) *teardown.Document {
	document := &teardown.Document{Cluster: teardown.Cluster{ID: string(r.Cluster), Server: r.Clients.Config.Host},
		Phase: decision.Phase, Reason: decision.Reason, Items: items, Problems: []teardown.Problem{}, Incomplete: []string{}}
	if object != nil {
		if object.Status.StartedAt != nil {
			document.Started = &object.Status.StartedAt.Time
		}
		if deadline := object.Deadline(); !deadline.IsZero() {
			document.Deadline = &deadline
		}
	}
	document.Count()
	return document
}

func pack(items []teardown.Item) ([]byte, error) {
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	if err := json.NewEncoder(writer).Encode(items); err != nil {
		return nil, err
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	return packed.Bytes(), nil
}

func unpack(packed []byte) ([]teardown.Item, error) {
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	var items []teardown.Item
	const most = 64 << 20
	return items, json.NewDecoder(io.LimitReader(reader, most)).Decode(&items)
}
