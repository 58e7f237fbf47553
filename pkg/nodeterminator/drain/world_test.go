package drain

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"

	"github.com/exeunt-io/exeunt/pkg/deadline"
	"github.com/exeunt-io/exeunt/pkg/termination"
	"github.com/exeunt-io/exeunt/pkg/termination/pod"
)

// world is a drainer with an API server that a test scripts. It lives in a bubble of package synctest.
type world struct {
	t       *testing.T
	client  *fake.Clientset
	config  Config
	drainer *Drainer
	node    *Node
	view    View
	events  *record.FakeRecorder
	begun   time.Time
	last    Result
	// restore is the report of an earlier leader.
	restore *termination.Report

	mu sync.Mutex
	// requests are those so far: the second, the method, the pod, the grace period.
	requests []string
	// answer answers a request, nil carries it out.
	answer  func(sentRequest) *answer
	changed chan struct{}
}

// sentRequest is a request of the drainer.
type sentRequest struct {
	method, name, subresource, uid string
	grace                          int64
	body                           []byte
}

// answer is the answer to a request.
type answer struct {
	code    int
	status  *metav1.Status
	text    string
	retry   int
	release <-chan struct{}
}

// inWorld runs the test with a node whose P is so many seconds away.
func inWorld(t *testing.T, untilP int, test func(*world), change ...func(*world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		w := &world{t: t, client: fake.NewClientset(), events: record.NewFakeRecorder(100), changed: make(chan struct{}, 1)}
		w.begun = time.Now()
		w.view = View{Begun: w.begun, Drain: true,
			Deadline: deadline.Of(w.begun, deadline.Limited(time.Duration(untilP)*time.Second+deadline.Unmounting))}
		w.view.Times, w.view.Tainted = w.view.Deadline.Times(w.begun, false), w.begun
		factory := informers.NewSharedInformerFactory(w.client, 0)
		w.config = Config{Client: w.client, Evictions: w.lane(), Forced: w.lane(), Recorder: w.events,
			Budgets: factory.Policy().V1().PodDisruptionBudgets().Informer(), Notify: func(string) { w.wake() }}
		for _, f := range change {
			f(w)
		}
		factory.StartWithContext(ctx)
		factory.WaitForCacheSync(ctx.Done())
		w.drainer = New(ctx, w.config)
		var running sync.WaitGroup
		test(w.start(ctx, &running))
		stop()
		running.Wait()
		w.drainer.Wait()
		factory.Shutdown()
	})
}

// start reconciles the node when something has changed, or its time has come.
func (w *world) start(ctx context.Context, running *sync.WaitGroup) *world {
	w.node = w.drainer.Node("n", "uid-of-n")
	if w.restore != nil {
		w.node.Restore(*w.restore)
	}
	running.Go(func() {
		for {
			w.mu.Lock()
			w.view.Now = time.Now()
			result, err := w.node.Reconcile(ctx, w.view)
			if err == nil {
				w.last = result
			}
			if next := result.Next; !next.IsZero() && !next.After(w.view.Now) {
				w.t.Errorf("the result at %s changes at %s", w.view.Now, next)
				result.Next = time.Time{}
			}
			w.mu.Unlock()
			var timer <-chan time.Time
			if !result.Next.IsZero() {
				timer = time.After(time.Until(result.Next))
			}
			select {
			case <-ctx.Done():
				return
			case <-w.changed:
			case <-timer:
			}
		}
	})
	synctest.Wait() // the fake API server has no versions: it loses what ends between a list and its watch
	return w
}

// script has requests answered by the function, and carried out if it is nil or returns nil.
func (w *world) script(answers func(sentRequest) *answer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answer = answers
}

// forgetRequests forgets the requests so far.
func (w *world) forgetRequests() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests = nil
}

func (w *world) wake() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// setView changes what the node says.
func (w *world) setView(change func(*View)) {
	w.mu.Lock()
	change(&w.view)
	w.mu.Unlock()
	w.wake()
	synctest.Wait()
}

// at goes to the second after the first action.
func (w *world) at(second float64) {
	w.t.Helper()
	<-time.After(time.Until(w.begun.Add(time.Duration(second * float64(time.Second)))))
	synctest.Wait()
}

// lane returns a client whose requests the test answers.
func (w *world) lane() rest.Interface {
	evictions, _, err := Lanes(&rest.Config{Host: "http://server", Transport: w})
	if err != nil {
		w.t.Fatal(err)
	}
	return evictions
}

// RoundTrip answers a request.
func (w *world) RoundTrip(r *http.Request) (*http.Response, error) {
	request := readRequest(r)
	w.mu.Lock()
	w.requests = append(w.requests, fmt.Sprintf("%.1f %s %s%s %d", time.Since(w.begun).Seconds(), request.method,
		request.name,
		request.subresource, request.grace))
	script := w.answer
	w.mu.Unlock()
	var a *answer
	if script != nil {
		a = script(request)
	}
	switch {
	case a == nil:
		a = w.carryOut(request)
	case a.release != nil:
		select {
		case <-a.release:
			a = w.carryOut(request)
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	case a.code == 0:
		return nil, fmt.Errorf("connection refused")
	}
	return a.response(), nil
}

func (a *answer) response() *http.Response {
	header, body := http.Header{"Content-Type": {"text/plain"}}, []byte(a.text)
	if a.status != nil {
		header.Set("Content-Type", "application/json")
		a.status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		body, _ = json.Marshal(a.status)
	}
	if a.retry > 0 {
		header.Set("Retry-After", fmt.Sprint(a.retry))
	}
	return &http.Response{StatusCode: a.code, Header: header, Body: io.NopCloser(bytes.NewReader(body))}
}

func readRequest(r *http.Request) sentRequest {
	steps := strings.Split(r.URL.Path, "/")
	found := sentRequest{method: r.Method}
	for i, step := range steps {
		if step == "pods" {
			found.name = steps[i+1]
			found.subresource = strings.Join(steps[i+2:], "")
		}
	}
	if found.subresource != "" {
		found.subresource = " " + found.subresource
	}
	options := &metav1.DeleteOptions{}
	if r.Body != nil {
		body, _ := io.ReadAll(r.Body)
		found.body = body
		eviction := policyv1.Eviction{}
		if r.Method == http.MethodPost && json.Unmarshal(body, &eviction) == nil {
			options = eviction.DeleteOptions
		} else if r.Method == http.MethodDelete {
			_ = json.Unmarshal(body, options)
		}
	}
	if options.GracePeriodSeconds != nil {
		found.grace = *options.GracePeriodSeconds
	}
	if options.Preconditions != nil {
		found.uid = string(*options.Preconditions.UID)
	}
	return found
}

// carryOut does what the API server and the kubelet do: the pod is Terminating, and gone at once with the grace period
// 0.
func (w *world) carryOut(r sentRequest) *answer {
	ok := &answer{code: 200, status: &metav1.Status{Status: metav1.StatusSuccess}}
	pods := w.client.CoreV1().Pods("default")
	p, err := pods.Get(w.t.Context(), r.name, metav1.GetOptions{})
	if err != nil || r.method != http.MethodPatch && r.uid != string(p.UID) {
		return refusal(409, "the UID in the precondition does not match")
	}
	p = p.DeepCopy()
	switch {
	case r.method == http.MethodPatch:
		p.Status.Conditions = append(p.Status.Conditions, v1.PodCondition{Type: v1.DisruptionTarget,
			Status: v1.ConditionTrue,
			Reason: disruptionReason})
	case r.grace == 0:
		w.end(r.name)
		return ok
	default:
		if r.method == http.MethodPost {
			p.Status.Conditions = append(p.Status.Conditions, v1.PodCondition{Type: v1.DisruptionTarget,
				Status: v1.ConditionTrue,
				Reason: byEvictionAPI})
		}
		p.DeletionTimestamp = &metav1.Time{Time: time.Now().Add(time.Duration(r.grace) * time.Second).Truncate(time.Second)}
		p.DeletionGracePeriodSeconds = &r.grace
	}
	if _, err = pods.Update(w.t.Context(), p, metav1.UpdateOptions{}); err != nil {
		w.t.Error(err)
	}
	return ok
}

func refusal(code int, text string) *answer {
	return &answer{code: code, status: &metav1.Status{Status: metav1.StatusFailure, Code: int32(code), Message: text}}
}

// fullBudget is the answer of a budget without room.
func fullBudget(name string) *answer {
	a := refusal(429, "Cannot evict pod as it would violate the pod's disruption budget.")
	a.status.Reason = metav1.StatusReasonTooManyRequests
	a.status.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause,
		Message: "The disruption budget " + name + " needs 1 healthy pods and has 1 currently"}}}
	return a
}

// pod creates a Ready pod on the node.
func (w *world) pod(name string, grace int64, change ...func(*v1.Pod)) *v1.Pod {
	w.t.Helper()
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-of-" + name),
		Labels: map[string]string{"app": "web"}, CreationTimestamp: metav1.Time{Time: w.begun.Add(-time.Hour)}},
		Spec: v1.PodSpec{NodeName: "n", TerminationGracePeriodSeconds: &grace},
		Status: v1.PodStatus{Phase: v1.PodRunning,
			Conditions: []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}}}}
	for _, f := range change {
		f(p)
	}
	if _, err := w.client.CoreV1().Pods("default").Create(w.t.Context(), p, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	synctest.Wait()
	return p
}

func (w *world) end(name string) {
	if err := w.client.CoreV1().Pods("default").Delete(w.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		w.t.Error(err)
	}
}

// expectRequests fails unless the requests since the last call are these, in any order of the same moment.
func (w *world) expectRequests(want ...string) {
	w.t.Helper()
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	got := w.requests
	w.requests = nil
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		w.t.Errorf("requests: %q, want %q", got, want)
	}
}

func (w *world) result() Result {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last
}

// left returns what the result says of the pod.
func (w *world) left(name string) termination.Left {
	for _, left := range w.result().Left {
		if left.Pod == "default/"+name {
			return left
		}
	}
	return termination.Left{}
}

func (w *world) expectReason(name string, reason pod.Reason) {
	w.t.Helper()
	if left := w.left(name); left.Reason != string(reason) {
		w.t.Errorf("pod %s is left for %+v, want %s", name, left, reason)
	}
}

// expectEvent fails unless the next event is so.
func (w *world) expectEvent(parts ...string) {
	w.t.Helper()
	synctest.Wait()
	select {
	case event := <-w.events.Events:
		for _, part := range parts {
			if !strings.Contains(event, part) {
				w.t.Errorf("the event %q lacks %q", event, part)
			}
		}
	default:
		w.t.Errorf("no event %q", parts)
	}
}

func (w *world) expectNoEvent() {
	w.t.Helper()
	synctest.Wait()
	select {
	case event := <-w.events.Events:
		w.t.Errorf("event %q", event)
	default:
	}
}
