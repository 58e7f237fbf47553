package stories

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/test/demo"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

const (
	// playLimit bounds a story that one pair plays.
	playLimit = 5 * time.Minute
	// lateOurs and lateUpstream bound the wait for an empty storage system, after another
	// claim was reclaimed.
	lateOurs, lateUpstream = time.Minute, 10 * time.Second
)

// Config says which stories are played.
type Config struct {
	// Binaries are the programs.
	Binaries sandbox.Binaries
	// Stories are played by each of Pairs.
	Stories []Story
	Pairs   []demo.Pair
	// Volumes is the number of volumes in stories with many.
	Volumes int
	// Timeout limits everything except stopping the programs.
	Timeout time.Duration
	// Keep leaves data and logs behind.
	Keep bool
	// Printer shows the stories, Progress the programs that are being started.
	Printer  Printer
	Progress demo.Progress
}

// Run plays the stories and leaves no process behind. The error names each story in which
// our programs left something.
func Run(ctx context.Context, config Config) error {
	if err := config.Binaries.CheckUpstream(); err != nil {
		return err
	}
	late := fmt.Errorf("the stories were not finished within %s, see --timeout", config.Timeout)
	limited, cancel := context.WithTimeoutCause(ctx, config.Timeout, late)
	defer cancel()
	guarded, fail := context.WithCancelCause(limited)
	defer fail(nil)
	theater := &theater{Config: config, fail: fail}
	results, err := theater.run(guarded)
	switch {
	case ctx.Err() != nil: // an interruption is the whole error
		return context.Cause(ctx)
	case err != nil && context.Cause(guarded) != nil:
		return context.Cause(guarded)
	case err != nil:
		return err
	}
	return errors.Join(config.Printer.Summarize(results), broken(results))
}

// theater is a cluster in which pairs play stories one after the other.
type theater struct {
	Config
	cluster *demo.Cluster
	// fail ends everything.
	fail func(error)

	mu sync.Mutex
	// end ends the story that upstream plays, otherwise nil.
	end func(error)
}

// run plays all stories.
func (t *theater) run(ctx context.Context) (results []Result, err error) {
	t.cluster, err = demo.StartCluster(ctx, demo.ClusterConfig{Binaries: t.Binaries, Keep: t.Keep, Progress: t.Progress, Died: t.died})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.cluster.Stop()) }()
	if err := t.cluster.ApplyClass(ctx); err != nil {
		return nil, err
	}
	stories, err := t.playable()
	if err != nil {
		return nil, err
	}
	for _, story := range stories {
		if err := t.Printer.Begin(story); err != nil {
			return nil, err
		}
		for _, pair := range t.Pairs {
			result, err := t.turn(ctx, story, pair)
			if err != nil {
				return nil, err
			}
			results = append(results, result)
		}
	}
	return results, nil
}

// playable returns the stories that can be played on this version of Kubernetes, and says which
// ones are left out.
func (t *theater) playable() ([]Story, error) {
	served, err := t.cluster.ServesAdmission()
	if err != nil || served {
		return t.Stories, err
	}
	stories, left := withoutAdmission(t.Stories)
	for _, name := range left {
		fmt.Fprintf(t.Progress.Out, "sandbox: this version of Kubernetes has no MutatingAdmissionPolicy, so the story %s is left out\n", name)
	}
	return stories, nil
}

// withoutAdmission returns the stories that need no admission policy, and the names of the others.
func withoutAdmission(all []Story) (stories []Story, left []string) {
	for _, story := range all {
		if story.admission {
			left = append(left, story.Name)
			continue
		}
		stories = append(stories, story)
	}
	return stories, left
}

// turn lets a pair play a story; in some stories our programs have the admission policy.
func (t *theater) turn(ctx context.Context, story Story, pair demo.Pair) (Result, error) {
	if !story.admission || pair != demo.Ours {
		return t.play(ctx, story, pair)
	}
	if err := t.cluster.EnforceAdmission(ctx); err != nil {
		return Result{}, err
	}
	result, err := t.play(ctx, story, pair)
	if err != nil {
		return result, err
	}
	return result, t.cluster.WithdrawAdmission(ctx)
}

// died ends everything if a program of ours died, and only the story if upstream plays it.
func (t *theater) died(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.end != nil {
		t.end(err)
		return
	}
	t.fail(err)
}

// play plays a story with one pair, and stops the pair.
func (t *theater) play(ctx context.Context, story Story, pair demo.Pair) (Result, error) {
	result := Result{Story: story.Name, Pair: pair}
	if err := t.cluster.StartPair(ctx, pair, story.Faults); err != nil {
		return result, err
	}
	begun := time.Now()
	stage := &stage{
		cluster: t.cluster, client: t.cluster.Client(), pair: pair, namespace: metav1.NamespaceDefault, volumes: t.Volumes,
		say: func(what string) { t.Printer.Step(Step{story.Name, pair, time.Since(begun).Seconds(), what}) },
	}
	err := t.act(ctx, story, stage, &result)
	if err == nil {
		err = t.cluster.StopControllers()
	}
	if err == nil {
		var left []string
		left, err = t.cluster.StoredVolumes(ctx)
		result.VolumesLeft = len(left)
	}
	if err != nil {
		return result, err
	}
	return result, errors.Join(t.cluster.StopPrograms(), stage.clear(ctx), t.Printer.End(result))
}

// act lets the stage play the story within its limit. A story that does not end is a result.
func (t *theater) act(ctx context.Context, story Story, stage *stage, result *Result) (err error) {
	limited, cancel := context.WithTimeoutCause(ctx, playLimit, fmt.Errorf("not within %s", playLimit))
	defer cancel()
	playing, end := context.WithCancelCause(limited)
	defer end(nil)
	if stage.pair == demo.Upstream {
		t.setEnd(end)
		defer t.setEnd(nil)
	}
	if result.Measures, err = story.play(playing, stage); err == nil {
		err = stage.settle(playing)
	}
	if err != nil && ctx.Err() == nil && playing.Err() != nil {
		result.Unfinished = err.Error()
		return nil
	}
	return err
}

// setEnd sets the function that ends the story of upstream.
func (t *theater) setEnd(end func(error)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end = end
}

// settle waits until another claim was reclaimed, and then for a limited time until the
// storage system is empty.
func (s *stage) settle(ctx context.Context) error {
	before, err := s.cluster.StoredVolumes(ctx)
	if err != nil || len(before) == 0 {
		return err
	}
	s.namespace = metav1.NamespaceDefault
	s.say("kubectl create -f marker.yaml, kubectl delete pvc marker  # the queues have processed the rest when it is gone")
	err = inOrder(
		func() error { return s.create(ctx, className, "marker") },
		func() error { return s.awaitBound(ctx, 1) },
		func() error {
			err := s.client.CoreV1().PersistentVolumeClaims(s.namespace).Delete(ctx, "marker", metav1.DeleteOptions{})
			return ignoreGone(err, "delete claim")
		},
		func() error { return s.awaitNothing(ctx) })
	if err != nil {
		return err
	}
	limit := map[demo.Pair]time.Duration{demo.Ours: lateOurs, demo.Upstream: lateUpstream}[s.pair]
	waiting, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err = s.await(waiting, "the storage system is empty", func(ctx context.Context) (bool, error) { return s.hasStored(ctx, 0) })
	if waiting.Err() != nil && ctx.Err() == nil { // the result tells what is left
		return nil
	}
	return err
}
