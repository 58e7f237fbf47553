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
	// storyLimit bounds one story of one pair.
	storyLimit = 5 * time.Minute
	// lateOurs and lateUpstream bound the wait for an empty storage system, after another
	// claim was reclaimed.
	lateOurs, lateUpstream = time.Minute, 10 * time.Second
)

// Config says which stories are run.
type Config struct {
	// Binaries are the programs.
	Binaries sandbox.Binaries
	// Each of Pairs runs all Stories.
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

// Run runs the stories and leaves no process behind. The error names each story in which
// our programs left something.
func Run(ctx context.Context, config Config) error {
	if err := config.checkPrograms(); err != nil {
		return err
	}
	late := fmt.Errorf("the stories were not finished within %s, see --timeout", config.Timeout)
	limited, cancel := context.WithTimeoutCause(ctx, config.Timeout, late)
	defer cancel()
	guarded, fail := context.WithCancelCause(limited)
	defer fail(nil)
	all := &runner{Config: config, fail: fail}
	results, err := all.run(guarded)
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

// runner runs the stories of all pairs one after the other, in one cluster.
type runner struct {
	Config
	cluster *demo.Cluster
	// fail ends everything.
	fail func(error)

	mu sync.Mutex
	// end ends the current story of upstream's programs; nil during a story of ours.
	end func(error)
}

// checkPrograms returns an error if a program of the stories is missing.
func (c Config) checkPrograms() error {
	own, shared := c.split()
	if len(shared) > 0 {
		if err := c.Binaries.CheckUpstream(); err != nil {
			return err
		}
	}
	for _, story := range own {
		if err := story.programs(c.Binaries); err != nil {
			return err
		}
	}
	return nil
}

// split returns the stories that have clusters of their own, and the others.
func (c Config) split() (own, shared []Story) {
	for _, story := range c.Stories {
		if story.own != nil {
			own = append(own, story)
		} else {
			shared = append(shared, story)
		}
	}
	return own, shared
}

// run runs all stories.
func (r *runner) run(ctx context.Context) ([]Result, error) {
	own, shared := r.split()
	var results []Result
	if len(shared) > 0 {
		found, err := r.runShared(ctx, shared)
		if err != nil {
			return nil, err
		}
		results = found
	}
	for _, story := range own {
		if err := r.Printer.Begin(story); err != nil {
			return nil, err
		}
		found, err := story.own(r, ctx, story)
		if err != nil {
			return nil, err
		}
		results = append(results, found...)
	}
	return results, nil
}

// runShared runs stories in one cluster.
func (r *runner) runShared(ctx context.Context, stories []Story) (results []Result, err error) {
	r.cluster, err = demo.StartCluster(ctx, demo.ClusterConfig{Binaries: r.Binaries, Keep: r.Keep, Progress: r.Progress,
		Died: r.died})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.cluster.Stop()) }()
	if err := r.cluster.ApplyClass(ctx); err != nil {
		return nil, err
	}
	if stories, err = r.supported(stories); err != nil {
		return nil, err
	}
	for _, story := range stories {
		if err := r.Printer.Begin(story); err != nil {
			return nil, err
		}
		for _, pair := range r.Pairs {
			result, err := r.runWithAdmission(ctx, story, pair)
			if err != nil {
				return nil, err
			}
			results = append(results, result)
		}
	}
	return results, nil
}

// supported returns the stories that can run on this version of Kubernetes, and says which
// ones are left out.
func (r *runner) supported(all []Story) ([]Story, error) {
	served, err := r.cluster.ServesAdmission()
	if err != nil || served {
		return all, err
	}
	stories, left := withoutAdmission(all)
	for _, name := range left {
		fmt.Fprintf(r.Progress.Out,
			"sandbox: this version of Kubernetes has no MutatingAdmissionPolicy, so the story %s is left out\n", name)
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

// runWithAdmission runs a story with one pair, ours with the admission policy if the story needs it.
func (r *runner) runWithAdmission(ctx context.Context, story Story, pair demo.Pair) (Result, error) {
	if !story.admission || pair != demo.Ours {
		return r.runStory(ctx, story, pair)
	}
	if err := r.cluster.EnforceAdmission(ctx); err != nil {
		return Result{}, err
	}
	result, err := r.runStory(ctx, story, pair)
	if err != nil {
		return result, err
	}
	return result, r.cluster.WithdrawAdmission(ctx)
}

// died ends everything if a program of ours died, and the current story alone if one of upstream's did.
func (r *runner) died(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.end != nil {
		r.end(err)
		return
	}
	r.fail(err)
}

// runStory runs a story with one pair, and stops the pair.
func (r *runner) runStory(ctx context.Context, story Story, pair demo.Pair) (Result, error) {
	result := Result{Story: story.Name, Pair: pair}
	if err := r.cluster.StartPair(ctx, pair, story.Faults); err != nil {
		return result, err
	}
	begun := time.Now()
	session := &session{
		cluster: r.cluster, client: r.cluster.Client(), pair: pair, namespace: metav1.NamespaceDefault, volumes: r.Volumes,
		say: func(what string) { r.Printer.Step(Step{story.Name, pair, time.Since(begun).Seconds(), what}) },
	}
	err := r.act(ctx, story, session, &result)
	if err == nil {
		err = r.cluster.StopControllers()
	}
	if err == nil {
		var left []string
		left, err = r.cluster.StoredVolumes(ctx)
		result.VolumesLeft = len(left)
	}
	if err != nil {
		return result, err
	}
	return result, errors.Join(r.cluster.StopPrograms(), session.clear(ctx), r.Printer.End(result))
}

// act carries out the steps of the story within its limit. A story that does not end is a result.
func (r *runner) act(ctx context.Context, story Story, session *session, result *Result) (err error) {
	limited, cancel := context.WithTimeoutCause(ctx, storyLimit, fmt.Errorf("not within %s", storyLimit))
	defer cancel()
	running, end := context.WithCancelCause(limited)
	defer end(nil)
	if session.pair == demo.Upstream {
		r.setEnd(end)
		defer r.setEnd(nil)
	}
	if result.Measures, err = story.run(running, session); err == nil {
		err = session.settle(running)
	}
	if err != nil && ctx.Err() == nil && running.Err() != nil {
		result.Unfinished = err.Error()
		return nil
	}
	return err
}

// setEnd sets the function that ends the story of upstream.
func (r *runner) setEnd(end func(error)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.end = end
}

// settle waits until another claim was reclaimed, and then for a limited time until the
// storage system is empty.
func (s *session) settle(ctx context.Context) error {
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
	err = s.await(waiting, "the storage system is empty",
		func(ctx context.Context) (bool, error) { return s.hasStored(ctx, 0) })
	if waiting.Err() != nil && ctx.Err() == nil { // the result tells what is left
		return nil
	}
	return err
}
