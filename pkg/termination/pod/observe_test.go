package pod_test

import (
	"math"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/deadline"
	"github.com/exeunt-io/exeunt/pkg/termination"
	. "github.com/exeunt-io/exeunt/pkg/termination/pod"
)

var start = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }

// view is a termination of 15 minutes, seen so many seconds after the request: P is at 895 s, E at 900 s.
func view(seconds int) View {
	times := deadline.Of(start, deadline.Limited(15*time.Minute)).Times(start, false)
	return View{Now: at(seconds), Times: times, Tainted: at(1)}
}

func late(seconds int) View {
	times := deadline.Of(start, deadline.Limited(0)).Times(start, false)
	return View{Now: at(seconds), Times: times, Tainted: start}
}

func pod(grace int64, change ...func(*v1.Pod)) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "app", CreationTimestamp: metav1.Time{Time: at(-3600)}},
		Spec: v1.PodSpec{TerminationGracePeriodSeconds: &grace}}
	for _, c := range change {
		c(p)
	}
	return p
}

func ownedBy(kind string) func(*v1.Pod) {
	yes := true
	return func(p *v1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: "owner", Controller: &yes}}
	}
}

func deleted(end time.Time) func(*v1.Pod) {
	return func(p *v1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: end} }
}

// granted is the grace period of the deletion.
func granted(seconds int64) func(*v1.Pod) {
	return func(p *v1.Pod) { p.DeletionGracePeriodSeconds = &seconds }
}

func annotated(key, value string) func(*v1.Pod) {
	return func(p *v1.Pod) { p.Annotations = map[string]string{key: value} }
}

func inPhase(phase v1.PodPhase) func(*v1.Pod) { return func(p *v1.Pod) { p.Status.Phase = phase } }

func tolerating(t v1.Toleration) func(*v1.Pod) {
	return func(p *v1.Pod) { p.Spec.Tolerations = []v1.Toleration{t} }
}

func prioritized(priority int32) func(*v1.Pod) {
	return func(p *v1.Pod) { p.Spec.Priority = &priority }
}

func finalized(p *v1.Pod) { p.Finalizers = []string{"batch.kubernetes.io/job-tracking"} }

func oneRuns(p *v1.Pod) {
	p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, v1.ContainerStatus{})
}

func sidecar(state v1.ContainerState) func(*v1.Pod) {
	return func(p *v1.Pod) {
		p.Status.InitContainerStatuses = append(p.Status.InitContainerStatuses, v1.ContainerStatus{State: state})
	}
}

func containersEnded(p *v1.Pod) {
	finalized(p)
	p.Status.ContainerStatuses = []v1.ContainerStatus{{State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{}}}}
}

func TestKindOf(t *testing.T) {
	for name, tc := range map[string]struct {
		pod  *v1.Pod
		want Kind
	}{
		"no owner":                   {pod(30), Ordinary},
		"a ReplicaSet's":             {pod(30, ownedBy("ReplicaSet")), Ordinary},
		"a DaemonSet's":              {pod(30, ownedBy("DaemonSet"), prioritized(2_000_001_000)), Daemon},
		"system-cluster-critical":    {pod(30, prioritized(2_000_000_000)), Critical},
		"the highest of users":       {pod(30, prioritized(1_000_000_000)), Ordinary},
		"a static pod's":             {pod(30, annotated(v1.MirrorPodAnnotationKey, "hash")), Mirror},
		"a static pod's of the node": {pod(30, annotated(v1.MirrorPodAnnotationKey, "hash"), ownedBy("Node")), Mirror},
	} {
		if got := KindOf(tc.pod); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

type ends map[string]struct {
	view View
	pod  *v1.Pod
	want End
}

func (e ends) run(t *testing.T) {
	t.Helper()
	for name, tc := range e {
		if got := tc.view.EndOf(tc.pod); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

func TestEndOfContainers(t *testing.T) {
	ends{
		"running":                           {view(0), pod(30), Running},
		"a finished job":                    {view(0), pod(30, inPhase(v1.PodSucceeded)), Finished},
		"containers ended, and a finalizer": {view(0), pod(30, deleted(at(10)), containersEnded), ContainersEnded},
		"failed, and a finalizer":           {view(0), pod(30, deleted(at(10)), inPhase(v1.PodFailed), finalized), ContainersEnded},
		"a container runs, and a finalizer": {view(0), pod(30, deleted(at(10)), containersEnded, oneRuns), InTime},
		"a sidecar runs, and a finalizer": {view(0), pod(30, deleted(at(10)), containersEnded,
			sidecar(v1.ContainerState{Running: &v1.ContainerStateRunning{}})), InTime},
		"a sidecar ended, and a finalizer": {view(0), pod(30, deleted(at(10)), containersEnded,
			sidecar(v1.ContainerState{Terminated: &v1.ContainerStateTerminated{}})), ContainersEnded},
		"never started, and a finalizer": {view(0), pod(30, deleted(at(10)), finalized), InTime},
		"a failed job":                   {view(0), pod(30, inPhase(v1.PodFailed)), Finished},
		"failed, no finalizer":           {view(0), pod(30, deleted(at(10)), inPhase(v1.PodFailed)), InTime},
	}.run(t)
}

func TestEndOfTerminatingPod(t *testing.T) {
	never := View{Now: at(0)}
	ends{
		"ends at P":                                {view(0), pod(30, deleted(at(895))), InTime},
		"ends a second after P":                    {view(0), pod(30, deleted(at(896))), InTime},
		"ends after P, in a second":                {view(0), pod(30, deleted(at(897)), granted(1)), InTime},
		"ends after P, in two seconds":             {view(0), pod(30, deleted(at(897)), granted(2)), BeyondP},
		"ends after P":                             {view(0), pod(30, deleted(at(897))), BeyondP},
		"after P, ends as soon as it could":        {view(897), pod(30, deleted(at(899))), InTime},
		"after P, ends later than it could":        {view(897), pod(30, deleted(at(900))), BeyondP},
		"no deadline":                              {never, pod(30, deleted(at(86400))), InTime},
		"a grace period of 292 years":              {view(0), pod(math.MaxInt64, deleted(time.Date(1734, 1, 1, 0, 0, 0, 0, time.UTC))), BeyondP},
		"late: ends as soon as it could":           {late(0), pod(30, deleted(at(2))), InTime},
		"late: ends later than it could":           {late(0), pod(30, deleted(at(30))), BeyondP},
		"a DaemonSet's pod ends between P and E":   {view(0), pod(30, deleted(at(899)), ownedBy("DaemonSet")), InTime},
		"a DaemonSet's pod ends after the machine": {view(0), pod(30, deleted(at(902)), ownedBy("DaemonSet")), BeyondP},
	}.run(t)
}

func TestOverduePod(t *testing.T) {
	silent := func(v View) View { v.Silent = true; return v }
	back := func(v View, second int) View { v.Back = at(second); return v }
	ends{
		"59 s after its end":                       {view(159), pod(30, deleted(at(100))), InTime},
		"a minute after its end":                   {view(160), pod(30, deleted(at(100))), Overdue},
		"a minute after its end, silent kubelet":   {silent(view(160)), pod(30, deleted(at(100))), InTime},
		"5 minutes after its end, silent kubelet":  {silent(view(400)), pod(30, deleted(at(100))), Overdue},
		"P, silent kubelet":                        {silent(view(895)), pod(30, deleted(at(700))), Overdue},
		"before P, silent kubelet":                 {silent(view(894)), pod(30, deleted(at(700))), InTime},
		"no deadline, silent kubelet":              {silent(View{Now: at(399)}), pod(30, deleted(at(100))), InTime},
		"a minute after its end, kubelet is back":  {back(view(160), 159), pod(30, deleted(at(100)), granted(30)), InTime},
		"kubelet had time for the whole grace":     {back(view(249), 159), pod(30, deleted(at(100)), granted(30)), Overdue},
		"kubelet was back before the deletion":     {back(view(160), 5), pod(30, deleted(at(100)), granted(30)), Overdue},
		"kubelet was back, and is silent again":    {silent(back(view(400), 390)), pod(30, deleted(at(100)), granted(30)), Overdue},
		"P before a minute passed, silent kubelet": {silent(view(900)), pod(30, deleted(at(880))), InTime},
	}.run(t)
}

func TestMomentOf(t *testing.T) {
	proven := view(0)
	proven.Proven = true
	for name, tc := range map[string]struct {
		view View
		pod  *v1.Pod
		want Moment
	}{
		"before L":                       {view(294), pod(600), Early},
		"L":                              {view(295), pod(600), FromL},
		"a grace period longer than T":   {view(0), pod(3600), FromL},
		"no readable grace period":       {view(0), pod(math.MaxInt64), FromL},
		"short grace period, P - 5 s":    {view(890), pod(2), Early},
		"short grace period, L":          {view(893), pod(2), FromL},
		"terminating, P - 5 s":           {view(890), pod(2, deleted(at(1000))), FromShortening},
		"terminating, before P - 5 s":    {view(889), pod(600, deleted(at(1000))), FromL},
		"no deadline, terminating":       {View{Now: at(86400)}, pod(600, deleted(at(90000))), Early},
		"no deadline":                    {View{Now: at(86400)}, pod(600), Early},
		"a DaemonSet's pod before P":     {view(894), pod(3600, ownedBy("DaemonSet")), Early},
		"a DaemonSet's pod at P":         {view(895), pod(0, ownedBy("DaemonSet")), FromL},
		"the machine is off":             {proven, pod(30), Proven},
		"the first action came too late": {late(0), pod(0), FromL},
	} {
		if got := tc.view.MomentOf(tc.pod); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

func TestGraceLeft(t *testing.T) {
	for name, tc := range map[string]struct {
		view View
		pod  *v1.Pod
		want int64
	}{
		"the whole grace period":        {view(0), pod(600), 600},
		"at L":                          {view(295), pod(600), 600},
		"more than is left":             {view(0), pod(3600), 895},
		"none":                          {view(0), pod(0), 1},
		"unnamed":                       {view(0), &v1.Pod{}, 30},
		"292 years":                     {view(0), pod(math.MaxInt64), 895},
		"a DaemonSet's pod has until E": {view(895), pod(30, ownedBy("DaemonSet")), 5},
		"late":                          {late(0), pod(600), 1},
		"late, a DaemonSet's pod":       {late(0), pod(600, ownedBy("DaemonSet")), 1},
	} {
		if got := tc.view.GraceLeft(tc.pod); got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
}

func TestReturns(t *testing.T) {
	all := tolerating(v1.Toleration{Operator: v1.TolerationOpExists})
	for name, tc := range map[string]struct {
		pod  *v1.Pod
		want bool
	}{
		"a DaemonSet's pod that tolerates all": {pod(30, ownedBy("DaemonSet"), all), true},
		"a DaemonSet's pod":                    {pod(30, ownedBy("DaemonSet")), false},
		"an older pod that tolerates all":      {pod(30, all), false},
		"a younger pod that tolerates all":     {pod(30, all, func(p *v1.Pod) { p.CreationTimestamp.Time = at(2) }), true},
		"our taint by name": {pod(30, ownedBy("DaemonSet"),
			tolerating(v1.Toleration{Key: termination.DisruptedTaint, Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoSchedule})), true},
		"another effect": {pod(30, ownedBy("DaemonSet"),
			tolerating(v1.Toleration{Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoExecute})), false},
		"another taint": {pod(30, ownedBy("DaemonSet"),
			tolerating(v1.Toleration{Key: "node.kubernetes.io/unschedulable", Operator: v1.TolerationOpExists})), false},
		"another value": {pod(30, ownedBy("DaemonSet"), tolerating(v1.Toleration{Key: termination.DisruptedTaint, Value: "x"})), false},
	} {
		if got := view(0).Observe(tc.pod, Tiers{}).Returns; got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

func TestNothingIsYoungerThanTaintToCome(t *testing.T) {
	p := pod(30, tolerating(v1.Toleration{Operator: v1.TolerationOpExists}))
	if (View{Now: at(0)}).Returns(p) {
		t.Error("a pod is younger than a taint that was not added")
	}
}

func TestDisruptableFrom(t *testing.T) {
	started := func(p *v1.Pod) { p.Status.StartTime = &metav1.Time{Time: at(-60)} }
	for text, want := range map[string]struct {
		from time.Time
		says Disruptability
	}{
		"true": {time.Time{}, Protected}, "false": {time.Time{}, Disruptable}, "": {time.Time{}, Unreadable},
		"yes": {time.Time{}, Unreadable}, "-1h": {time.Time{}, Unreadable}, "0s": {at(-60), Protected}, "1h": {at(3540), Protected},
	} {
		if from, says := DisruptableFrom(pod(30, annotated(DoNotDisruptAnnotation, text), started)); !from.Equal(want.from) || says != want.says {
			t.Errorf("%q: from %v, %v, want %v", text, from, says, want)
		}
	}
	if _, says := DisruptableFrom(pod(30)); says != Disruptable {
		t.Errorf("no annotation: %v", says)
	}
	if from, _ := DisruptableFrom(pod(30, annotated(DoNotDisruptAnnotation, "1h"))); !from.Equal(at(0)) {
		t.Errorf("a pod that has not started may be evicted from %v", from)
	}
}

func TestGateOf(t *testing.T) {
	for name, tc := range map[string]struct {
		pod   *v1.Pod
		now   int
		tiers Tiers
		want  Gate
	}{
		"nothing":                             {pod(30), 0, Tiers{}, Open},
		"ordinary pods do not wait":           {pod(30), 0, Tiers{true, true, true}, Open},
		"critical pods wait for ordinary":     {pod(30, prioritized(2e9)), 0, Tiers{Ordinary: true}, ByOrder},
		"critical pods wait for nothing else": {pod(30, prioritized(2e9)), 0, Tiers{Critical: true, Volumes: true}, Open},
		"a DaemonSet waits for critical pods": {pod(30, ownedBy("DaemonSet")), 0, Tiers{Critical: true}, ByOrder},
		"a DaemonSet waits for volumes":       {pod(30, ownedBy("DaemonSet")), 0, Tiers{Volumes: true}, ByOrder},
		"a DaemonSet goes last":               {pod(30, ownedBy("DaemonSet")), 0, Tiers{}, Open},
		"protected for ever":                  {pod(30, annotated(DoNotDisruptAnnotation, "true")), 86400, Tiers{}, ByAnnotation},
		"protected for 2 h, after 61 min":     {pod(30, annotated(DoNotDisruptAnnotation, "2h")), 60, Tiers{}, ByAnnotation},
		"protected for an hour, after it":     {pod(30, annotated(DoNotDisruptAnnotation, "1h")), 0, Tiers{}, Open},
		"an annotation that says nothing":     {pod(30, annotated(DoNotDisruptAnnotation, "yes")), 0, Tiers{}, Open},
		"explicitly not":                      {pod(30, annotated(DoNotDisruptAnnotation, "false")), 0, Tiers{}, Open},
	} {
		if got := view(tc.now).GateOf(tc.pod, tc.tiers); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

// A state that changes by time alone must have a timer, because nothing is polled.
func TestNextNamesEveryChange(t *testing.T) {
	for name, p := range map[string]*v1.Pod{
		"running":            pod(600),
		"protected for 2 h":  pod(30, annotated(DoNotDisruptAnnotation, "65m")),
		"terminating":        pod(600, deleted(at(300))),
		"terminating late":   pod(600, deleted(at(1000))),
		"a DaemonSet's":      pod(30, ownedBy("DaemonSet")),
		"short":              pod(2),
		"without a deadline": pod(600, deleted(at(50))),
	} {
		for _, silent := range []bool{false, true} {
			state := func(second int) (State, View) {
				v := view(second)
				v.Silent, v.Back = silent, at(400)
				if name == "without a deadline" {
					v.Times = deadline.Times{}
				}
				return v.Observe(p, Tiers{}), v
			}
			for second := range 1500 {
				before, v := state(second)
				after, _ := state(second + 1)
				if next := v.Next(p); before != after && !next.Equal(at(second+1)) {
					t.Errorf("%s, silent %v: %+v becomes %+v at %d s, next is %v", name, silent, before, after, second+1, next)
				}
			}
		}
	}
}
