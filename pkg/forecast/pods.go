package forecast

import (
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/deadline"
	"github.com/exeunt-io/exeunt/pkg/termination"
	"github.com/exeunt-io/exeunt/pkg/termination/pod"
)

// outlook is what would happen to one pod.
type outlook struct {
	pod     *v1.Pod
	view    pod.View
	tiers   pod.Tiers
	state   pod.State
	budgets budgets
	// ending: the namespace is being deleted.
	ending bool
	// forced is L.
	forced   time.Time
	decision pod.Decision
}

// view is what the plan says of all pods. A kubelet that came back a moment ago sends SIGTERM only then.
func (w *World) view(p plan) pod.View {
	return pod.View{Now: w.Now, Times: p.times, Tainted: p.tainted, Silent: w.Silent,
		Back: termination.ReadySince(w.Node, w.Now)}
}

// outlooks decides about all pods.
func (w *World) outlooks(p plan) []*outlook {
	view := w.view(p)
	tiers := w.tiers(view)
	var all []*outlook
	for i := range w.Pods {
		one := &w.Pods[i]
		all = append(all, &outlook{pod: one, view: view, tiers: tiers, state: view.Observe(one, tiers),
			budgets: w.budgetsOf(one), ending: w.Ending[one.Namespace], forced: view.ForcedAt(one)})
	}
	share(all)
	for _, o := range all {
		o.state = o.at(w.Now)
		o.decision = pod.Decide(o.state)
	}
	return all
}

// tiers returns which pods and volumes keep those that go later.
func (w *World) tiers(view pod.View) pod.Tiers {
	var t pod.Tiers
	for i := range w.Pods {
		if decision := pod.Decide(view.Observe(&w.Pods[i], pod.Tiers{})); decision.Action != pod.Leave {
			kind := pod.KindOf(&w.Pods[i])
			t.Ordinary = t.Ordinary || kind == pod.Ordinary
			t.Critical = t.Critical || kind == pod.Critical
		}
	}
	for _, d := range w.disks(view) {
		t.Volumes = t.Volumes || d.Awaited
	}
	return t
}

// at returns the state of the pod at the time, if nothing changes until then but the time.
func (o *outlook) at(now time.Time) pod.State {
	view := o.view
	view.Now = now
	state := view.Observe(o.pod, o.tiers)
	state.Answer = o.budgets.answer
	switch {
	case o.ending && state.End == pod.Running:
		state.Gate = pod.ByNamespace
	case state.Gate == pod.Open && o.budgets.next:
		state.Gate = pod.ByBudget
	}
	return state
}

// misses returns what the pod would miss.
func (o *outlook) misses() Misses {
	m := Misses{Against: []string{}}
	switch {
	case o.view.Times.None(), o.decision.Action == pod.Leave, o.decision.Reason == pod.ToEvict:
		return m
	case o.decision.Reason == pod.TerminatingBeyond:
		m.GraceSeconds = o.shortened()
		return m
	case o.state.End != pod.Running:
		return m
	}
	at := later(o.forced, o.view.Now)
	state := o.at(at)
	if state.Kind != pod.Daemon { // which goes last, with what is left
		view := o.view
		view.Now = at
		m.GraceSeconds = max(0, int64(pod.GraceOf(o.pod)/time.Second)-view.GraceLeft(o.pod))
	}
	if !o.ending && (o.budgets.answer != pod.Untried || o.budgets.next) {
		m.Against = append(m.Against, o.budgets.names()...)
	}
	if state.Gate == pod.ByAnnotation {
		m.Against = append(m.Against, pod.DoNotDisruptAnnotation)
	}
	return m
}

// shortened returns the seconds that a Terminating pod loses whose grace period ends after P.
func (o *outlook) shortened() int64 {
	at := later(o.view.Times.GraceEnds.Add(-deadline.Shortening), o.view.Now)
	if o.state.Kind == pod.Daemon {
		return 0
	}
	end := o.pod.DeletionTimestamp.Time
	if seconds := o.pod.DeletionGracePeriodSeconds; end.Before(o.pod.CreationTimestamp.Time) && seconds != nil {
		return max(0, *seconds-int64(at.Sub(o.view.Now)/time.Second))
	}
	return max(0, int64(end.Sub(at)/time.Second)-1)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// first returns when the pod may go, and the time of that where it is known.
func (o *outlook) first() (First, time.Time) {
	switch o.decision.Action {
	case pod.Leave:
		return Stays, time.Time{}
	case pod.Evict, pod.Delete:
		return AtOnce, o.view.Now
	case pod.Shorten, pod.Remove, pod.Wait:
	}
	switch o.decision.Reason {
	case pod.BudgetBlocks, pod.BudgetInUse:
		return AfterBudget, time.Time{}
	case pod.NamespaceEnds:
		return WithNamespace, time.Time{}
	case pod.OrderKeeps:
		if o.state.Kind == pod.Daemon {
			return AfterOthers, time.Time{}
		}
		return AfterOrdinary, time.Time{}
	case pod.DoNotDisrupt:
		if until, _ := pod.DisruptableFrom(o.pod); !until.IsZero() && (o.forced.IsZero() || until.Before(o.forced)) {
			return AtTime, until
		}
		return o.whenForced()
	case pod.EvictionRefused:
		return o.whenForced()
	default:
		return Ending, o.pod.DeletionTimestamp.Time
	}
}

func (o *outlook) whenForced() (First, time.Time) {
	switch {
	case o.forced.IsZero():
		return Never, time.Time{}
	case o.state.Kind == pod.Daemon:
		return AtP, o.forced
	}
	return AtL, o.forced
}
