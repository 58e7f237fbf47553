package nodeend

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/deadline"
	"github.com/exeunt-io/exeunt/test/cloudmock/machines"
)

// tolerance is the error of times: those in objects are whole seconds, and requests take their time.
const tolerance = 2 * time.Second

// Pod is a pod that was on a node when the node was to end.
type Pod struct {
	Name, Node string
	UID        types.UID
	// Grace is its terminationGracePeriodSeconds. Needs is how long its containers run after SIGTERM, negative for ever.
	Grace int64
	Needs time.Duration
	// Guard is what refuses its eviction: "" for nothing, the name of a budget, or do-not-disrupt.
	Guard string
	// Begun: it was being deleted before.
	Begun bool
}

// DoNotDisrupt is the guard of pods with the annotation of this name.
const DoNotDisrupt = "karpenter.sh/do-not-disrupt"

// PodFrom returns a pod as the API has it. Its budget is set by the caller.
func PodFrom(pod *v1.Pod) Pod {
	p := Pod{Name: pod.Namespace + "/" + pod.Name, Node: pod.Spec.NodeName, UID: pod.UID,
		Begun: pod.DeletionTimestamp != nil}
	if pod.Spec.TerminationGracePeriodSeconds != nil {
		p.Grace = *pod.Spec.TerminationGracePeriodSeconds
	}
	if needs, err := time.ParseDuration(pod.Annotations["cloudmock.exeunt.io/exit-after"]); err == nil {
		p.Needs = needs
	}
	if pod.Annotations["cloudmock.exeunt.io/ignore-sigterm"] == "true" {
		p.Needs = -1
	}
	if pod.Annotations[DoNotDisrupt] == "true" {
		p.Guard = DoNotDisrupt
	}
	return p
}

// Case is the end of nodes.
type Case struct {
	// Requested is when the nodes were to end, and Period how long that may take.
	Requested time.Time
	Period    time.Duration
	// Pods were on the nodes. Silent are the nodes whose kubelets were dead: no pod gets a signal there.
	Pods   []Pod
	Silent []string
	// Allowed is how many pods each budget lets go.
	Allowed map[string]int
	// Disks are the handles of the disks that were mounted.
	Disks []string
}

// Outcome is what the pods and disks of nodes got.
type Outcome struct {
	// Graces are how long the pods ran after SIGTERM, in the order of the pods.
	Graces []Grace
	// CutInTime are the pods that were killed although their containers would have exited in time.
	CutInTime []string
	// Bypasses is the number of pods that ended against a budget or do-not-disrupt, and Early that of those which did
	// before the last moment for their grace period.
	Bypasses, Early int
	// Overrun is how long after the deadline the last container ran. Running: one of them still does.
	Overrun time.Duration
	Running bool
	// Reattached is how long after the request each disk was attached to another node; Hanging is the number of those
	// that were not.
	Reattached time.Duration
	Hanging    int
	TwoWriters int
}

// Grace is how a pod ended.
type Grace struct {
	// Asked is its grace period in seconds, Given what it ran after SIGTERM.
	Asked int64
	Given time.Duration
	End   End
}

// End is how the containers of a pod ended.
type End int

const (
	// StillRuns: they have not.
	StillRuns End = iota
	// ByThemselves: they exited.
	ByThemselves
	// Killed: they got SIGKILL, or the machine lost power, after SIGTERM.
	Killed
	// Unasked: the machine lost power before SIGTERM.
	Unasked
)

// Whole reports whether the pod ended by itself, or had its grace period, less a second.
func (g Grace) Whole() bool {
	return g.End == ByThemselves || g.End == Killed && g.Given >= deadline.Seconds(g.Asked)-time.Second
}

// String returns the grace as a table has it.
func (g Grace) String() string {
	switch g.End {
	case ByThemselves:
		return "whole"
	case Killed:
		return fmt.Sprintf("%.0f of %d s", g.Given.Seconds(), g.Asked)
	case Unasked:
		return "none"
	default:
		return "runs on"
	}
}

// life is what the log has of a pod.
type life struct{ sigterm, sigkill, end time.Time }

// Measure returns the outcome, from the log of the machines.
func Measure(c Case, events []machines.Event) Outcome {
	var o Outcome
	times := c.times()
	lives := c.livesOf(events)
	for _, pod := range c.Pods {
		life := lives[pod.UID]
		o.Graces = append(o.Graces, life.grace(pod))
		if life.end.IsZero() {
			o.Running = true
		} else {
			o.Overrun = max(o.Overrun, life.end.Sub(c.Requested.Add(c.Period)))
		}
		if c.isCutInTime(pod, life, times) {
			o.CutInTime = append(o.CutInTime, pod.Name)
		}
	}
	o.countBypasses(c, lives, times)
	o.measureDisks(c, events)
	return o
}

func (c Case) times() deadline.Times {
	return deadline.Of(c.Requested, deadline.Limited(c.Period)).Times(c.Requested, len(c.Disks) > 0)
}

// livesOf returns what happened to the pods since the request.
func (c Case) livesOf(events []machines.Event) map[types.UID]life {
	lives := map[types.UID]life{}
	for _, pod := range c.Pods {
		var l life
		for _, e := range events {
			switch {
			case e.UID == pod.UID && e.Event == machines.Sigterm && l.sigterm.IsZero():
				l.sigterm = e.Time
			case e.UID == pod.UID && e.Event == machines.Sigkill:
				l.sigkill = e.Time
			case e.UID == pod.UID && e.Event == machines.Exited,
				e.Node == pod.Node && e.Event == machines.PowerOff && l.end.IsZero() && !e.Time.Before(c.Requested):
				l.end = e.Time
				if e.Event == machines.PowerOff {
					l.sigkill = e.Time
				}
			}
		}
		lives[pod.UID] = l
	}
	return lives
}

func (l life) grace(pod Pod) Grace {
	g := Grace{Asked: pod.Grace}
	switch {
	case l.end.IsZero():
	case l.sigterm.IsZero():
		g.End = Unasked
	case l.sigkill.IsZero():
		g.End = ByThemselves
	default:
		g.End, g.Given = Killed, l.end.Sub(l.sigterm)
	}
	return g
}

// isCutInTime reports whether the pod was killed although it would have exited within the time that is promised.
func (c Case) isCutInTime(pod Pod, l life, times deadline.Times) bool {
	promised := min(deadline.Seconds(pod.Grace), times.GraceEnds.Sub(c.Requested)) - time.Second
	return !l.end.IsZero() && !l.sigkill.IsZero() && pod.Needs >= 0 && pod.Needs <= promised &&
		!slices.Contains(c.Silent, pod.Node)
}

// countBypasses counts pods that ended against what guards them. The first pods of a budget are those that it allows.
func (o *Outcome) countBypasses(c Case, lives map[types.UID]life, times deadline.Times) {
	guarded := map[string][]time.Time{}
	var early = map[string]int{}
	for _, pod := range c.Pods {
		l := lives[pod.UID]
		at := l.sigterm
		if at.IsZero() {
			at = l.end
		}
		if pod.Guard == "" || at.IsZero() {
			continue
		}
		guarded[pod.Guard] = append(guarded[pod.Guard], at)
		if at.Before(times.Forced(deadline.Seconds(pod.Grace)).Add(-tolerance)) {
			early[pod.Guard]++
		}
	}
	for guard, ended := range guarded {
		o.Bypasses += max(0, len(ended)-c.Allowed[guard])
		o.Early += max(0, early[guard]-c.Allowed[guard])
	}
}

// measureDisks finds when each disk was attached elsewhere.
func (o *Outcome) measureDisks(c Case, events []machines.Event) {
	ending := map[string]bool{}
	for _, pod := range c.Pods {
		ending[pod.Node] = true
	}
	for _, disk := range c.Disks {
		i := slices.IndexFunc(events, func(e machines.Event) bool {
			return e.Volume == disk && e.Event == machines.Attached && e.Time.After(c.Requested) && !ending[e.Node]
		})
		if i < 0 {
			o.Hanging++
			continue
		}
		o.Reattached = max(o.Reattached, events[i].Time.Sub(c.Requested))
	}
	for _, e := range events {
		if e.Event == machines.TwoWriters && slices.Contains(c.Disks, e.Volume) {
			o.TwoWriters++
		}
	}
}

// Forced returns the bypasses as a table has them.
func (o Outcome) Forced() string {
	if o.Early > 0 {
		return fmt.Sprintf("%d, %d early", o.Bypasses, o.Early)
	}
	return strconv.Itoa(o.Bypasses)
}

// Late returns the whole seconds past the deadline as a table has them.
func (o Outcome) Late() string {
	if o.Running {
		return "runs on"
	}
	return seconds(max(0, o.Overrun).Truncate(time.Second))
}

// Disk returns the seconds until all disks were attached elsewhere as a table has them.
func (o Outcome) Disk(watched time.Duration, disks int) string {
	switch {
	case disks == 0:
		return "-"
	case o.Hanging > 0:
		return "over " + seconds(watched)
	}
	return seconds(o.Reattached)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.0f", d.Seconds()) }
