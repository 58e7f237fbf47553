package machines

import (
	"testing"

	v1 "k8s.io/api/core/v1"
)

const deaf = "ignore-sigterm=true"

// endings are what happens to a pod with 30 s of grace until 100 s have passed.
var endings = map[string]struct {
	annotation string
	play       func(w *world)
	want       string
}{
	"container ends by itself": {"exit-after=5s", func(w *world) { w.setGrace("web", 30) },
		"0 web started, 0 web sigterm, 5 web exited"},
	"container is killed": {deaf, func(w *world) { w.setGrace("web", 30) },
		"0 web started, 0 web sigterm, 30 web sigkill, 30 web exited"},
	"two seconds at least": {deaf, func(w *world) { w.setGrace("web", 1) },
		"0 web started, 0 web sigterm, 2 web sigkill, 2 web exited"},
	"shortened grace counts anew": {deaf, func(w *world) { w.setGrace("web", 30); w.at(10); w.setGrace("web", 25) },
		"0 web started, 0 web sigterm, 35 web sigkill, 35 web exited"},
	"shortened grace ends earlier": {deaf, func(w *world) { w.setGrace("web", 30); w.at(10); w.setGrace("web", 5) },
		"0 web started, 0 web sigterm, 15 web sigkill, 15 web exited"},
	"longer grace changes nothing": {deaf, func(w *world) { w.setGrace("web", 30); w.at(10); w.setGrace("web", 700) },
		"0 web started, 0 web sigterm, 30 web sigkill, 30 web exited"},
	"grace of centuries does not end": {deaf, func(w *world) { w.setGrace("web", 9223372037) },
		"0 web started, 0 web sigterm"},
	"removed pod has its own grace": {deaf, func(w *world) { w.forget("web") },
		"0 web started, 0 web sigterm, 30 web sigkill, 30 web exited"},
	"pod removed while it ends": {deaf, func(w *world) { w.setGrace("web", 30); w.at(10); w.forget("web") },
		"0 web started, 0 web sigterm, 30 web sigkill, 30 web exited"},
	"dead kubelet sends no SIGTERM": {deaf, func(w *world) { w.faults("kubeletDead"); w.setGrace("web", 5); w.at(50) },
		"0 web started"},
	"dead kubelet sends no SIGKILL": {deaf, func(w *world) {
		w.setGrace("web", 10)
		w.at(5)
		w.faults("kubeletDead")
		w.at(60)
		w.faults()
	}, "0 web started, 0 web sigterm, 70 web sigkill, 70 web exited"},
	"container ends under a dead kubelet": {"exit-after=10s", func(w *world) {
		w.setGrace("web", 30)
		w.at(5)
		w.faults("kubeletDead")
	}, "0 web started, 0 web sigterm, 10 web exited"},
	"kubelet without network sends SIGKILL": {deaf, func(w *world) {
		w.setGrace("web", 10)
		w.at(5)
		w.faults("partition")
	}, "0 web started, 0 web sigterm, 10 web sigkill, 10 web exited"},
	"kubelet without network sees no deletion": {deaf, func(w *world) {
		w.faults("partition")
		w.setGrace("web", 10)
		w.at(50)
		w.faults()
	}, "0 web started, 50 web sigterm, 60 web sigkill, 60 web exited"},
	"power ends everything": {deaf, func(w *world) { w.setGrace("web", 30); w.at(10); w.faults("poweredOff") },
		"0 web started, 0 web sigterm, 10 mock-0 poweroff"},
}

func TestKubeletCountsGrace(t *testing.T) {
	for name, tc := range endings {
		t.Run(name, func(t *testing.T) {
			inWorld(t, Config{Nodes: 1}, nil, func(w *world) {
				w.create(newPod("web", tc.annotation))
				tc.play(w)
				w.at(100)
				w.expect(tc.want)
			})
		})
	}
}

func TestEndedPodIsReportedAndRemoved(t *testing.T) {
	inWorld(t, Config{Nodes: 1}, nil, func(w *world) {
		w.create(newPod("polite"))
		w.create(newPod("deaf", "ignore-sigterm=true"))
		w.create(newPod("done", "finish-after=7s"))
		ended := map[string]v1.PodPhase{}
		w.seeUpdates(func(pod *v1.Pod) { ended[pod.Name] = pod.Status.Phase })
		w.setGrace("polite", 30)
		w.setGrace("deaf", 30)
		w.at(40)
		for name, want := range map[string]v1.PodPhase{"polite": v1.PodSucceeded, "deaf": v1.PodFailed,
			"done": v1.PodSucceeded} {
			if ended[name] != want {
				t.Errorf("phase of %s was %q at last, want %q", name, ended[name], want)
			}
			if exists := w.pod(name) != nil; exists != (name == "done") {
				t.Errorf("%s exists: %t", name, exists)
			}
		}
	})
}

func TestPodIsReadyWhenItsAnnotationSays(t *testing.T) {
	inWorld(t, Config{Nodes: 1}, nil, func(w *world) {
		for _, pod := range []*v1.Pod{newPod("now"), newPod("later", "ready-after=30s"), newPod("no", "ready-after=never")} {
			w.create(pod)
		}
		for _, at := range []float64{29, 31} {
			w.at(at)
			for name, want := range map[string]bool{"now": true, "later": at > 30, "no": false} {
				if got := isReady(w.pod(name)); got != want {
					t.Errorf("%s after %v s: ready %t, want %t", name, at, got, want)
				}
			}
		}
	})
}

func isReady(pod *v1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == v1.PodReady {
			return c.Status == v1.ConditionTrue
		}
	}
	return false
}
