package machines

import (
	"context"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// What pods say with annotations: durations, but for the second.
const (
	annExitAfter     = "cloudmock.exeunt.io/exit-after"     // from SIGTERM to the end of the containers, 0s by default
	annIgnoreSigterm = "cloudmock.exeunt.io/ignore-sigterm" // "true"
	annFinishAfter   = "cloudmock.exeunt.io/finish-after"   // from the start to Succeeded, never by default
	annReadyAfter    = "cloudmock.exeunt.io/ready-after"    // from the start to Ready, 0s by default; or "never"
)

// exitedBySigkill is the exit code of containers that were killed.
const exitedBySigkill = 137

// pod is a pod on a machine, from when its kubelet sees the pod. The lock of the cloud guards all fields below uid.
type pod struct {
	machine *machine
	name    string // namespace/name
	uid     types.UID

	// latest is the pod in the API, and removed tells that it is no longer there; seen and seenRemoved are what
	// the kubelet knows of them.
	latest, seen         *v1.Pod
	removed, seenRemoved bool
	changed              signal

	// waits: the pod waits for its disks.
	waits bool
	// inUse are the disks that the pod has or is about to have mounted.
	inUse   []volume
	running bool
	// started and ended are when the containers did.
	started, ended time.Time
	exitCode       int32
}

func (p *pod) event(what Happening, disk string) Event {
	return Event{Node: p.machine.name, Pod: p.name, UID: p.uid, Volume: disk, Event: what}
}

// see tells the machine of a new state of a pod. The caller holds the lock.
func (m *machine) see(object *v1.Pod) {
	p := m.pods[object.UID]
	if p == nil {
		if isMirror(object) || !m.connected() || m.nodeUID == "" {
			m.changed.send()
			return
		}
		p = &pod{machine: m, name: object.Namespace + "/" + object.Name, uid: object.UID, changed: newSignal()}
		m.pods[p.uid] = p
		boot := m.boot
		m.cloud.group.Go(func() { p.live(boot) })
	}
	p.learn(object)
}

// seeRemoval tells the machine that a pod is no longer in the API. The caller holds the lock.
func (m *machine) seeRemoval(object *v1.Pod) {
	if p := m.pods[object.UID]; p != nil {
		p.removed = true
		p.changed.send()
	}
	m.changed.send()
}

// live is the life of a pod on its machine. Each step returns false if the machine lost power.
func (p *pod) live(ctx context.Context) {
	_ = p.prepare(ctx) && p.run(ctx) && p.terminate(ctx) && p.cleanUp(ctx) && p.remove(ctx)
}

// until waits until the condition holds, on what the kubelet has seen.
func (p *pod) until(ctx context.Context, holds condition) bool {
	return p.machine.cloud.until(ctx, &p.changed, func(now time.Time) (bool, time.Time) {
		if p.machine.connected() {
			p.seen, p.seenRemoved = p.latest, p.removed
		}
		if p.seen == nil {
			return false, time.Time{}
		}
		return holds(now)
	})
}

// do runs a step under the lock, unless the machine lost power.
func (p *pod) do(ctx context.Context, step func(now time.Time)) bool {
	return p.until(ctx, func(now time.Time) (bool, time.Time) {
		step(now)
		return true, time.Time{}
	})
}

// ends reports whether the kubelet knows that the pod has to end.
func (p *pod) ends() bool { return p.seenRemoved || p.seen.DeletionTimestamp != nil }

func isFinished(object *v1.Pod) bool {
	return object.Status.Phase == v1.PodSucceeded || object.Status.Phase == v1.PodFailed
}

// prepare waits for the volumes of the pod, and mounts them.
func (p *pod) prepare(ctx context.Context) bool {
	cloud := p.machine.cloud
	attached := p.until(ctx, func(time.Time) (bool, time.Time) {
		if p.waits = !p.ends() && !isFinished(p.seen); !p.waits {
			return true, time.Time{}
		}
		if !p.machine.connected() || !p.machine.driverRuns(p) {
			return false, time.Time{}
		}
		volumes, ready := cloud.volumesOf(p.seen)
		if !ready {
			return false, time.Time{}
		}
		p.inUse, p.waits = volumes, false
		return true, time.Time{}
	})
	// The attach-detach controller must see that a disk is in use before a pod writes to it.
	report := func(ctx context.Context, _ *v1.Pod) error { return p.machine.reportVolumes(ctx) }
	if !attached || len(p.inUse) > 0 && !p.request(ctx, report) {
		return false
	}
	return p.do(ctx, func(time.Time) {
		for _, v := range p.inUse {
			cloud.mount(v.handle, p)
		}
	})
}

// run starts the containers and returns once they have to end, or have ended.
func (p *pod) run(ctx context.Context) bool {
	if !p.do(ctx, func(now time.Time) {
		if !p.ends() && !isFinished(p.seen) {
			p.started, p.running = now, true
			p.machine.cloud.write(p.event(Started, ""))
			if p.isDriver() {
				p.machine.hadDriver = true
				p.machine.notify()
			}
		}
	}) {
		return false
	}
	if p.started.IsZero() {
		return true
	}
	for {
		var report bool
		if !p.until(ctx, func(now time.Time) (bool, time.Time) {
			if p.finish(now) {
				return true, time.Time{}
			}
			report = p.machine.connected() && !p.ends() && !p.isReported(now)
			return report || p.machine.kubeletRuns() && p.ends(), earliest(now, p.after(p.seen, annReadyAfter), p.finishAt())
		}) {
			return false
		}
		if !report {
			return true
		}
		if !p.request(ctx, p.reportRunning) {
			return false
		}
	}
}

// finish ends the containers that are done.
func (p *pod) finish(now time.Time) bool {
	if at := p.finishAt(); !at.IsZero() && !now.Before(at) {
		p.exit(now, 0)
		return true
	}
	return false
}

// exit ends the containers.
func (p *pod) exit(now time.Time, code int32) {
	p.running, p.ended, p.exitCode = false, now, code
	p.machine.cloud.write(p.event(Exited, ""))
	if p.isDriver() {
		p.machine.notify()
	}
}

func (p *pod) finishAt() time.Time { return p.after(p.seen, annFinishAfter) }

// after returns the time of the annotation, counted from the start, or zero.
func (p *pod) after(object *v1.Pod, annotation string) time.Time {
	wait, err := time.ParseDuration(object.Annotations[annotation])
	if err != nil {
		return time.Time{}
	}
	return p.started.Add(wait)
}

// earliest returns the first of the times that are later than now, or zero.
func earliest(now time.Time, times ...time.Time) (first time.Time) {
	for _, at := range times {
		if at.After(now) && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}

// cleanUp reports the end of the containers and unmounts the volumes; neither waits for the other.
func (p *pod) cleanUp(ctx context.Context) bool {
	reported := make(chan struct{})
	go func() {
		defer close(reported)
		if !p.ended.IsZero() {
			p.request(ctx, p.reportEnd)
		}
	}()
	unmounted := p.until(ctx, func(time.Time) (bool, time.Time) {
		if len(p.inUse) > 0 && (!p.machine.kubeletRuns() || !p.machine.driverRuns(p)) {
			return false, time.Time{}
		}
		for _, v := range p.inUse {
			p.machine.cloud.unmount(v.handle, p)
		}
		p.inUse = nil
		return true, time.Time{}
	})
	<-reported
	return unmounted
}

// remove removes the pod from the API once it is deleted, and from the machine.
func (p *pod) remove(ctx context.Context) bool {
	return p.until(ctx, func(time.Time) (bool, time.Time) { return p.machine.connected() && p.ends(), time.Time{} }) &&
		p.request(ctx, p.delete) &&
		p.until(ctx, func(time.Time) (bool, time.Time) { return p.seenRemoved, time.Time{} }) &&
		p.do(ctx, func(time.Time) { delete(p.machine.pods, p.uid) })
}

// isDriver reports whether the pod serves the disks of its node.
func (p *pod) isDriver() bool { return p.seen != nil && p.seen.Labels["app"] == DriverApp }

// driverRuns reports whether disks can be mounted and unmounted for the pod. A machine that had a pod of the driver
// needs one. The caller holds the lock.
func (m *machine) driverRuns(p *pod) bool {
	if !m.cloud.config.DriverPodRequired && !m.hadDriver || p.isDriver() {
		return true
	}
	for _, other := range m.pods {
		if other.running && other.isDriver() {
			return true
		}
	}
	return false
}

// volumeNames returns what volumesInUse of the Node has to be. The caller holds the lock.
func (m *machine) volumeNames() []v1.UniqueVolumeName {
	names := []v1.UniqueVolumeName{}
	for _, p := range m.pods {
		for _, v := range p.inUse {
			names = append(names, v.uniqueName())
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
