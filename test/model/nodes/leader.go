package nodes

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/deadline"
	"github.com/exeunt-io/exeunt/pkg/termination/node"
	"github.com/exeunt-io/exeunt/pkg/termination/pod"
)

// look has the caches of the leader show what the API server has, but for a watch that is late.
func (w World) look(s *State) {
	l, shown := &s.Leader, s.API
	switch l.Late {
	case Nodes:
		shown.Nodes = l.View.Nodes
	case Pods:
		shown.Pods = l.View.Pods
	case Attachments:
		shown.Disk = l.View.Disk
	case None:
	}
	l.View = shown
	for n, seen := range shown.Nodes {
		m := &l.Memory[n]
		if !seen.Exists || m.Again != seen.Again { // another UID is another termination
			*m = Memory{Again: seen.Again}
		}
		if seen.Exists && seen.Deleting {
			m.Obeyed = w.obey(m.Obeyed, seen.Deadline)
		}
	}
	if w.room(s) {
		l.Heard = [pods]pod.Answer{}
	}
}

// begin begins a process that leads. Its caches are new, and the annotation exeunt.io/instance says which machines were
// seen.
func (s *State) begin() {
	before := s.Leader.Memory
	s.Leader = Leader{View: s.API}
	for n, m := range before {
		if s.Leader.Memory[n].Again = m.Again; m.seen() {
			s.Leader.Memory[n].Answered = node.Running
		}
	}
}

// proof is what the leader takes for proven.
func (w World) proof(s *State, n int) node.Proof {
	if w.Prove != nil {
		return w.Prove(w, s, n)
	}
	return w.ProveBy(s, n, 2)
}

// ProveBy proves from so many answers in a row that a machine is off.
func (w World) ProveBy(s *State, n int, answers uint8) node.Proof {
	seen, m := s.Leader.View.Nodes[n], s.Leader.Memory[n]
	claimed, enough := m.Answered == node.Off || m.Answered == node.Gone, m.Answers >= answers
	if w.Provider == node.Manual {
		claimed, enough = seen.AdminMarked, true
	}
	switch {
	case seen.Marked && s.renews(n):
		return node.Revoked
	case !claimed:
		return node.NoProof
	case enough && !s.renews(n):
		return node.Given
	}
	return node.Begun
}

// object returns the pod as the leader sees it.
func (w World) object(p Pod, i int) *v1.Pod {
	grace := int64(w.grace(i))
	object := &v1.Pod{Spec: v1.PodSpec{TerminationGracePeriodSeconds: &grace}}
	object.CreationTimestamp.Time = requested.AddDate(-1, 0, 0)
	if w.isDriver(i) {
		object.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Controller: ptr.To(true)}}
	}
	if p.Ends != 0 {
		object.DeletionTimestamp, object.DeletionGracePeriodSeconds = &metav1.Time{Time: p.Ends.at()}, &grace
	}
	if p.Short {
		object.DeletionGracePeriodSeconds = ptr.To(int64(1))
	}
	if p.Held {
		object.Finalizers = []string{"example.com/others"}
	}
	if p.Ended {
		ended := v1.ContainerState{Terminated: &v1.ContainerStateTerminated{}}
		object.Status.ContainerStatuses = []v1.ContainerStatus{{State: ended}}
	}
	return object
}

// judged is what the leader decides about a pod.
type judged struct {
	pod.Decision
	ordinary bool
	// given is the grace period that the pod gets now.
	given Second
}

// question is what a decision about a pod rests on.
type question struct {
	pod                            Pod
	number                         int
	now, obeyed                    Second
	attached, silent, proven, uses bool
	tiers                          pod.Tiers
	heard                          pod.Answer
}

// judge decides for each pod of the node.
func (w World) judge(s *State, n int) (all [pods]judged) {
	shown := s.Leader.View
	q := question{now: w.now(s, n), obeyed: s.Leader.Memory[n].Obeyed, attached: shown.Disk.on(n), silent: !s.renews(n),
		proven: w.proof(s, n) == node.Given}
	for i, p := range shown.Pods {
		if !p.isOn(n) {
			continue
		}
		q.pod, q.number, q.heard, q.uses = p, i, s.Leader.Heard[i], i == db && q.attached
		q.tiers.Volumes = w.isDriver(i) && q.attached && !stranded(shown, n, all)
		all[i] = w.answer(q)
		q.tiers.Ordinary = q.tiers.Ordinary || all[i].ordinary && all[i].Action != pod.Leave
	}
	return all
}

// answer decides about a pod, once.
func (w World) answer(q question) judged {
	known, is := w.seen[q]
	if is {
		return known
	}
	view := pod.View{Now: q.now.at(), Times: times(q.obeyed, q.attached), Tainted: requested, Silent: q.silent,
		Proven: q.proven}
	object, observe := w.object(q.pod, q.number), pod.View.Observe
	if w.Observe != nil {
		observe = w.Observe
	}
	state := observe(view, object, q.tiers)
	state.Answer, state.Volume = q.heard, q.uses
	known = judged{pod.Decide(state), state.Kind == pod.Ordinary, Second(view.GraceLeft(object))}
	w.seen[q] = known
	return known
}

// nodeState is what the leader knows of the node.
func (w World) nodeState(s *State, n int) node.State {
	shown, m := s.Leader.View, s.Leader.Memory[n]
	seen, all := shown.Nodes[n], w.judge(s, n)
	observed := node.State{Owner: node.Ours, Provider: w.Provider, Instance: m.Answered, Proof: w.proof(s, n),
		Deleting: seen.Deleting, Protected: seen.Protected, Begun: seen.Begun, Silent: !s.renews(n), Settled: true,
		NoStop: w.NoStop, Marked: seen.Marked || seen.AdminMarked, Deleted: m.Deleted, Volumes: volumes(shown, n, all)}
	stop := times(m.Obeyed, shown.Disk.on(n)).Stop
	observed.Ended = seen.Begun && deadline.Due(stop, w.now(s, n).at())
	for i, p := range shown.Pods {
		if p.isOn(n) {
			observed.Pods = max(observed.Pods, podsOf(p, all[i].Decision))
		}
	}
	return observed
}

// podsOf returns what the pod is to the node.
func podsOf(p Pod, d pod.Decision) node.Pods {
	switch {
	case d.Action == pod.Remove && p.Held && p.Ends != 0:
		return node.Kept
	case d.Action == pod.Remove:
		return node.Stuck
	case d.Action != pod.Leave:
		return node.Awaited
	case d.Reason == pod.GoesWithNode:
		return node.NoPods
	case d.Reason == pod.ForeignFinalizer:
		return node.Finished
	}
	return node.Stuck
}

// volumes returns what is attached to the node.
func volumes(shown API, n int, all [pods]judged) node.Volumes {
	switch {
	case !shown.Disk.on(n):
		return node.Detached
	case shown.Disk.State == Detaching:
		return node.Detaching
	case stranded(shown, n, all):
		return node.Stranded
	}
	return node.Attached
}

// stranded reports whether nobody waits for the pod that has the disk.
func stranded(shown API, n int, all [pods]judged) bool {
	return shown.Pods[db].isOn(n) && all[db].Decision == pod.Decision{Action: pod.Leave, Reason: pod.KubeletStuck}
}

func (w World) decide(s *State, n int) node.Decision {
	if w.Decide != nil {
		return w.Decide(w.nodeState(s, n))
	}
	return node.Decide(w.nodeState(s, n))
}
