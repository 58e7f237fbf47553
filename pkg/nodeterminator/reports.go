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
	// reportTries is how often a report is written until the next change, and lastTries how often the last one is: 5, 10,
	// 20 s apart, and so on to longestPause. Together that is two days.
	reportTries, lastTries = 5, 57
	longestPause           = time.Hour
	// reportTimeout is how long a request may take.
	reportTimeout = 10 * time.Second
	// readTimeout is how long a node waits for the report of an earlier leader, and how long one read may take.
	readTimeout = 2 * time.Second
	// readRetry is the time until the second attempt.
	readRetry = 200 * time.Millisecond
	// lastReport is how long a stop waits for reports.
	lastReport = time.Second
)

// reports writes the reports of terminations. No node waits for a report: what cannot be written is tried again some
// times, and with the next change.
type reports struct {
	client corev1.ConfigMapInterface
	// exists reports whether the node of a report is being terminated.
	exists func(report termination.Report) bool

	mu      sync.Mutex
	ctx     context.Context
	pending map[types.UID]*pendingReport
	writing sync.WaitGroup
	// stored are the reports that exist, with the timer after which each may be deleted.
	stored map[types.UID]*time.Timer
	// deleting is taken by the one deletion that runs.
	deleting chan struct{}
}

// pendingReport is a report that is written at a time.
type pendingReport struct {
	report termination.Report
	// written is what the last write said of phase and counts.
	written string
	at      time.Time
	timer   *time.Timer
	// writing: a write is in flight. last: the node is gone.
	writing, last bool
	// failures are the writes that failed in a row.
	failures int
}

func newReports(client kubernetes.Interface, namespace string, exists func(termination.Report) bool) *reports {
	return &reports{client: client.CoreV1().ConfigMaps(namespace), exists: exists, ctx: context.Background(),
		pending: map[types.UID]*pendingReport{}, stored: map[types.UID]*time.Timer{}, deleting: make(chan struct{}, 1)}
}

// start begins to write, and lists the reports of earlier processes once. Stop waits for writes in flight.
func (r *reports) start(ctx context.Context) (stop func()) {
	r.mu.Lock()
	r.ctx = context.WithoutCancel(ctx)
	r.mu.Unlock()
	r.writing.Go(func() { r.list(ctx) })
	return func() {
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

func reportName(uid types.UID) string { return "node-termination-" + string(uid) }

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

// offer writes the report if its phase, its reason or a count has changed, at most once in 5 s.
func (r *reports) offer(report termination.Report) {
	text := summaryOf(report)
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.of(types.UID(report.UID))
	p.report = report
	if text == p.written || p.timer != nil {
		return
	}
	p.timer = time.AfterFunc(time.Until(p.at.Add(reportPause)), func() { r.write(types.UID(report.UID)) })
}

// finish writes the last report of a node, and forgets the node.
func (r *reports) finish(report termination.Report) {
	uid := types.UID(report.UID)
	r.mu.Lock()
	p := r.of(uid)
	if p.timer != nil {
		p.timer.Stop()
	}
	p.report, p.last, p.failures = report, true, 0
	r.mu.Unlock()
	r.writing.Go(func() { r.write(uid) })
}

func (r *reports) of(uid types.UID) *pendingReport {
	if r.pending[uid] == nil {
		r.pending[uid] = &pendingReport{}
	}
	return r.pending[uid]
}

// summaryOf is what a change of makes a report be written.
func summaryOf(report termination.Report) string {
	return fmt.Sprint(report.Phase, report.Reason, report.Counts, len(report.Left), len(report.Volumes), report.Deadline)
}

// write writes the report as it is now. Only one write of a report is in flight: the next one begins when it has ended.
func (r *reports) write(uid types.UID) {
	r.mu.Lock()
	p := r.pending[uid]
	if p == nil || p.writing {
		r.mu.Unlock()
		return
	}
	p.writing = true
	report, last, ctx := p.report, p.last, r.ctx
	r.mu.Unlock()
	err := r.store(ctx, report)
	if err != nil {
		klog.FromContext(ctx).Info("Writing a report failed; the termination goes on", "node", report.Node, "err", err)
	}
	r.mu.Lock()
	p.timer, p.writing, p.at = nil, false, time.Now()
	finished := p.last && !last
	if !finished {
		r.wrote(p, report, err)
	}
	r.mu.Unlock()
	if finished {
		r.write(uid)
	}
}

// wrote plans the next attempt of a write that failed, or the write of a change that was offered meanwhile, and forgets
// a node whose last report was written. The caller holds the mutex.
func (r *reports) wrote(p *pendingReport, report termination.Report, err error) {
	uid := types.UID(report.UID)
	p.failures++
	tries := reportTries
	if p.last { // no later change would write it
		tries = lastTries
	}
	if err != nil && p.failures < tries && !apierrors.IsForbidden(err) {
		p.timer = time.AfterFunc(min(reportPause<<min(p.failures-1, 10), longestPause), func() { r.write(uid) })
		return
	}
	p.written = summaryOf(report)
	if err == nil {
		p.failures = 0
	}
	switch {
	case p.last:
		delete(r.pending, uid)
	case summaryOf(p.report) != p.written:
		p.timer = time.AfterFunc(reportPause, func() { r.write(uid) })
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
