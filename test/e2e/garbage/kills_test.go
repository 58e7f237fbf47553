package garbage

import (
	"context"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// TestScenariosAmidKills runs the scenarios while the collector is killed at any moment and
// started again: their outcomes are the same.
func TestScenariosAmidKills(t *testing.T) {
	t.Parallel()
	r := start(t, ours, false)
	ended := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	var deleting sync.WaitGroup
	deleting.Go(func() { r.deleteTerminatingPods(ctx, t) })
	t.Run("group", func(t *testing.T) {
		var running sync.WaitGroup
		each(common, func(name string, s scenario) {
			if s.oneLife != "" {
				return
			}
			running.Add(1)
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				defer running.Done()
				s.runIn(r.world(t))
			})
		})
		go func() { running.Wait(); close(ended) }()
		t.Run("kills", func(t *testing.T) {
			t.Parallel()
			t.Logf("the collector was killed %d times", r.killUntil(t, ended))
		})
	})
	cancel()
	deleting.Wait()
}

const (
	// maxKills bounds the kills, and maxLife the time between the start of the collection and the
	// next kill.
	maxKills = 15
	maxLife  = 2 * time.Second
)

// killUntil kills the collector and starts it again until the channel is closed, and returns how
// often.
func (r *rig) killUntil(t *testing.T, ended <-chan struct{}) int {
	t.Helper()
	for kills := range maxKills {
		select {
		case <-ended:
			return kills
		case <-time.After(rand.N(maxLife)):
		}
		lives := r.lives(t)
		r.kill(t)
		r.launch(t)
		r.world(t).await("the collector works again", func() bool { return r.lives(t) > lives })
	}
	return maxKills
}

// lives returns how often the collector has begun to collect.
func (r *rig) lives(t *testing.T) int {
	t.Helper()
	log, err := os.ReadFile(r.process.LogFile())
	must(t, err, "read log")
	return strings.Count(string(log), `"Collecting garbage"`)
}

// deleteTerminatingPods deletes pods without a node that are being deleted until the context ends, as the
// controller podgc does. The API server deletes a pod in two writes, and gives up after the first one if its
// client is killed meanwhile: the pod then waits for nothing.
func (r *rig) deleteTerminatingPods(ctx context.Context, t *testing.T) {
	t.Helper()
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		all, err := r.typed.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
		if err != nil {
			return
		}
		for _, pod := range all.Items {
			if pod.DeletionTimestamp == nil || pod.Spec.NodeName != "" {
				continue
			}
			options := metav1.DeleteOptions{GracePeriodSeconds: pointer[int64](0),
				Preconditions: metav1.NewUIDPreconditions(string(pod.UID))}
			if err := r.typed.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, options); err != nil {
				t.Logf("delete pod %s/%s: %v", pod.Namespace, pod.Name, err)
			}
		}
	}, time.Second)
}
