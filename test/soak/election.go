package main

import (
	"fmt"
	"time"

	"github.com/exeunt-io/exeunt/test/sandbox"
)

// noticedWithin is how long a leader may go on after a restore of etcd: it may be frozen, and its renewals fail.
const noticedWithin = 15 * time.Second

// calmFor is how long after a restore nothing else happens to the programs.
const calmFor = 25 * time.Second

// election is the leader election of both programs.
type election struct {
	duration, renewal time.Duration
	// pod: a process is that of a pod, and takes over the lease of the process before it at once.
	pod bool
	// alone: pv-controller and garbage-collector have one replica each, without leader election.
	alone bool
}

// electionOf returns that of a seed. A restore takes longer than a leader of most seeds waits for its renewal. In every
// third seed the leader waits longer, and has to notice by the Lease that etcd was restored. In another third no Lease
// tells pv-controller and garbage-collector.
func electionOf(seed uint64) election {
	if seed%3 == 0 {
		return election{duration: 24 * time.Second, renewal: 20 * time.Second, pod: true}
	}
	return election{duration: leaseDuration, renewal: 3 * time.Second, alone: seed%3 == 1}
}

// isAlone reports whether the program has one replica without leader election. The provisioner never has: its Lease tells
// it of a restore.
func (w *world) isAlone(program Program) bool {
	return program != Provisioner && !w.config.Upstream && electionOf(w.config.Seed).alone
}

// treeUsers returns how many users have trees: none without a collector.
func (w *world) treeUsers() int {
	if w.replicasOf(Collector) == 0 {
		return 0
	}
	return treeUserCount
}

// replicasOf returns the number of replicas of the program. Upstream's collector is not part of the soak.
func (w *world) replicasOf(program Program) int {
	switch {
	case program == Collector && w.config.Upstream:
		return 0
	case w.isAlone(program):
		return 1
	}
	return Replicas
}

// args returns the flags, whose names begin with the prefix.
func (e election) args(prefix, namespace string) []string {
	args := []string{
		"--" + prefix, "--" + prefix + "-lease-duration=" + e.duration.String(),
		"--" + prefix + "-renew-deadline=" + e.renewal.String(), "--" + prefix + "-retry-period=500ms",
	}
	if namespace != "" {
		args = append(args, namespace)
	}
	return args
}

// leaders returns the processes that lead.
func (w *world) leaders() []*sandbox.Process {
	var leaders []*sandbox.Process
	for _, replicas := range w.replicas {
		r := leading(replicas)
		if r == nil {
			continue
		}
		if process := r.current(); process != nil {
			leaders = append(leaders, process)
		}
	}
	return leaders
}

// goingOn waits until the processes have ended, and returns those that have not in time.
func goingOn(processes []*sandbox.Process, within time.Duration) (found []finding) {
	deadline := time.Now().Add(within)
	for _, process := range processes {
		select {
		case <-process.Done():
		case <-time.After(time.Until(deadline)):
			found = append(found, finding{text: fmt.Sprintf("%s led before etcd was restored, and goes on with what it remembers %s later", process.Name(), within)})
		}
	}
	return found
}
