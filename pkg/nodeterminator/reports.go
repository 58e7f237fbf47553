package nodeterminator

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/internal/answer"
	"github.com/exeunt-io/exeunt/pkg/termination"
)

const (
	// reportPause is the least time between two writes of a report.
	reportPause = 5 * time.Second
	// longestPause is the longest time until a report is written again: 5, 10, 20 s, and so on.
	longestPause = time.Hour
	// lastTries is how often the last report of a node is written: for two days. Nothing else would end that.
	lastTries = 57
	// reportTimeout is how long a request may take.
	reportTimeout = 10 * time.Second
	// readTimeout is how long a node waits for the report of an earlier leader, and how long one read may take.
	readTimeout = 2 * time.Second
	// readRetry is the time until the second attempt.
	readRetry = 200 * time.Millisecond
	// lastReport is how long a stop waits for reports.
	lastReport = time.Second
)

// reports writes the reports of terminations. No node waits for a report: what cannot be written is tried again.
type reports struct {
	client corev1.ConfigMapInterface
	// exists reports whether the node of a report is being terminated.
	exists func(report termination.Report) bool

	mu  sync.Mutex
	ctx context.Context
	// pending are the reports of nodes that this process terminates, until the last one is written.
	pending map[types.UID]*pendingReport
	writing sync.WaitGroup
	// stopped: this process leads no more.
	stopped bool
	// stored are the reports that exist, with the timer after which each may be deleted.
	stored map[types.UID]*time.Timer
	// deleting is taken by the one deletion that runs.
	deleting chan struct{}
}

// pendingReport is a report that is written at a time.
type pendingReport struct {
	report termination.Report
	// summary is that of the newest report.
	summary string
	// changes counts what is to be written, and written is the number of the last one that was.
	changes, written int
	// at is when the last write ended.
	at    time.Time
	timer *time.Timer
	// writing: a write is in flight. last: the node is gone.
	writing, last bool
	// failures are the writes that failed in a row.
	failures int
}

func newReports(client kubernetes.Interface, namespace string, exists func(termination.Report) bool) *reports {
	return &reports{client: client.CoreV1().ConfigMaps(namespace), exists: exists, ctx: context.Background(),
		pending: map[types.UID]*pendingReport{}, stored: map[types.UID]*time.Timer{}, deleting: make(chan struct{}, 1)}
}

// start begins to write, and lists the reports of earlier processes once. Stop writes what has changed: the next leader
// counts on from what is stored.
func (r *reports) start(ctx context.Context) (stop func()) {
	r.mu.Lock()
	r.ctx = context.WithoutCancel(ctx)
	r.mu.Unlock()
	r.writing.Go(func() { r.list(ctx) })
	return func() {
		r.flush()
		done := make(chan struct{})
		go func() {
			r.writing.Wait()
			close(done)
		}()
		select {
		case <-done:
		case <-time.After(lastReport):
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, timer := range r.stored {
			timer.Stop()
		}
	}
}

// flush begins all writes that are planned, and none later.
func (r *reports) flush() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.pending {
		if p.changes != p.written && !p.writing {
			r.plan(p, time.Now())
		}
	}
	r.stopped = true
}

func reportName(uid types.UID) string { return "node-termination-" + string(uid) }

// begin notes that this process terminates the node: its report is neither ended nor deleted beside that.
func (r *reports) begin(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.of(uid)
}

// forget notes that a node has ended without a report.
func (r *reports) forget(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.pending, uid)
}

// read returns the report of the node, nil if there is none. It tries until the context ends: a store that is away at a
// change of leaders must not lose all counts.
func (r *reports) read(ctx context.Context, uid types.UID) (*termination.Report, error) {
	var stored *v1.ConfigMap
	exists := false
	err := repeated(ctx, func() (err error) {
		stored, exists, err = r.get(ctx, reportName(uid))
		return err
	})
	if err != nil || !exists {
		return nil, err
	}
	r.keep(uid, ageLeft(stored))
	report, err := reportIn(stored)
	if err != nil {
		return nil, fmt.Errorf("read report %s: %w", stored.Name, err)
	}
	return &report, nil
}

// repeated does something until it succeeds, is forbidden, or the context ends.
func repeated(ctx context.Context, do func() error) error {
	err := do()
	for pause := readRetry; err != nil && !apierrors.IsForbidden(err); pause = min(2*pause, reportPause) {
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
		err = do()
	}
	return err
}

func (r *reports) get(ctx context.Context, name string) (*v1.ConfigMap, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	return answer.Get(ctx, name, r.client.Get)
}

// offer writes the report if its phase, its reason or a number has changed, at most once in 5 s.
func (r *reports) offer(report termination.Report) {
	text := summaryOf(report)
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.of(types.UID(report.UID))
	p.report = report
	if text != p.summary {
		p.summary = text
		r.changed(p, p.at.Add(reportPause))
	}
}

// finish writes the last report of a node, and forgets the node.
func (r *reports) finish(report termination.Report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.of(types.UID(report.UID))
	p.report, p.last = report, true
	r.changed(p, time.Now())
}

func (r *reports) of(uid types.UID) *pendingReport {
	if r.pending[uid] == nil {
		r.pending[uid] = &pendingReport{}
	}
	return r.pending[uid]
}

// summaryOf is what a change of makes a report be written.
func summaryOf(report termination.Report) string {
	return fmt.Sprint(report.Phase, report.Reason, report.Counts, len(report.CutShort), len(report.Left), len(report.Volumes),
		report.Deadline)
}

// changed has a change written. A write in flight plans the next one when it ends. The caller holds the mutex.
func (r *reports) changed(p *pendingReport, at time.Time) {
	p.changes++
	p.failures = 0
	if !p.writing {
		r.plan(p, at)
	}
}

// plan has the report written at this time, and not before. The caller holds the mutex.
func (r *reports) plan(p *pendingReport, at time.Time) {
	if p.timer != nil {
		p.timer.Stop()
	}
	uid := types.UID(p.report.UID)
	if wait := time.Until(at); wait > 0 {
		p.timer = time.AfterFunc(wait, func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.writeSoon(uid)
		})
		return
	}
	r.writeSoon(uid)
}

// writeSoon writes the report in the background. The caller holds the mutex: no write begins while stop waits for all.
func (r *reports) writeSoon(uid types.UID) {
	if !r.stopped {
		r.writing.Go(func() { r.write(uid) })
	}
}

// write writes the report as it is now. Only one write of a report is in flight.
func (r *reports) write(uid types.UID) {
	r.mu.Lock()
	p := r.pending[uid]
	if p == nil || p.writing || p.written == p.changes {
		r.mu.Unlock()
		return
	}
	p.writing = true
	report, change, ctx := p.report, p.changes, r.ctx
	r.mu.Unlock()
	err := r.store(ctx, report)
	if err != nil {
		klog.FromContext(ctx).Info("Writing a report failed; the termination goes on", "node", report.Node, "err", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	p.writing, p.at = false, time.Now()
	r.wrote(p, change, err)
}

// wrote plans the write of a change that came meanwhile, or the next attempt of a write that failed, and forgets a node
// whose last report was written. The caller holds the mutex.
func (r *reports) wrote(p *pendingReport, change int, err error) {
	switch {
	case p.changes != change && r.stopped: // stop waits for this write, and for what the write begins
		r.writing.Go(func() { r.write(types.UID(p.report.UID)) })
	case p.changes != change && p.last:
		r.plan(p, p.at)
	case p.changes != change:
		r.plan(p, p.at.Add(reportPause))
	case err != nil && (!p.last || p.failures < lastTries-1):
		r.plan(p, p.at.Add(min(reportPause<<min(p.failures, 10), longestPause)))
		p.failures++
	case p.last:
		delete(r.pending, types.UID(p.report.UID))
	default:
		p.written = change
	}
}

// store patches the report, or creates it.
func (r *reports) store(ctx context.Context, report termination.Report) error {
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	text, err := json.Marshal(report)
	if err != nil {
		return fmt.Errorf("encode report: %w", err)
	}
	data := map[string]string{termination.ReportKey: string(text)}
	if !r.isStored(types.UID(report.UID)) {
		if err := r.create(ctx, report, data); !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	err = r.patch(ctx, report, data)
	if !answer.NeedsRead(err) {
		return err
	}
	if _, exists, unread := r.get(ctx, reportName(types.UID(report.UID))); unread != nil || exists {
		return err
	}
	return r.create(ctx, report, data)
}

func (r *reports) patch(ctx context.Context, report termination.Report, data map[string]string) error {
	body, err := json.Marshal(map[string]any{"data": data})
	if err != nil {
		return fmt.Errorf("encode report: %w", err)
	}
	uid := types.UID(report.UID)
	_, err = r.client.Patch(ctx, reportName(uid), types.MergePatchType, body, metav1.PatchOptions{})
	if err == nil {
		r.keep(uid, reportAge)
	}
	return err
}

func (r *reports) create(ctx context.Context, report termination.Report, data map[string]string) error {
	uid := types.UID(report.UID)
	_, err := r.client.Create(ctx, &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: reportName(uid),
		Labels: map[string]string{termination.ReportLabel: labelValue(report.Node)}}, Data: data}, metav1.CreateOptions{})
	if err == nil || apierrors.IsAlreadyExists(err) {
		r.keep(uid, reportAge)
	}
	return err
}

// labelValue returns the name of the node, if a label can have it.
func labelValue(name string) string {
	if len(validation.IsValidLabelValue(name)) > 0 {
		return ""
	}
	return name
}
