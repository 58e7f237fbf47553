package stories

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/test/demo"
	"github.com/exeunt-io/exeunt/test/sandbox"
	"github.com/exeunt-io/exeunt/test/upstream/rbac"
)

// way is one way to end a cluster.
type way struct {
	name demo.Pair
	// end does what is done before the machines are deleted.
	end func(*ending, context.Context) error
}

// ways are those that people use, and ours.
func ways() []way {
	return []way{
		{name: "machines", end: func(*ending, context.Context) error { return nil }},
		{name: "services", end: (*ending).deleteServices},
		{name: "script", end: (*ending).deleteClaimsAndWait},
		{name: demo.Ours, end: (*ending).tearDown},
	}
}

// ending is a cluster that ends in one way. All its programs are upstream's, but for the storage and the machines; with
// our way a command is run, and nothing of ours is installed before.
type ending struct {
	*session
	way       way
	sandbox   *sandbox.Cluster
	driver    *sandbox.Driver
	balancers *sandbox.Balancers
	binaries  sandbox.Binaries
	// kept is the handle of the volume with policy Retain.
	kept string
}

// lateAnswer is how long the storage system takes to answer for the last volume, which exists before. The sidecar waits
// longer.
const lateAnswer, sidecarTimeout = 20 * time.Second, 30 * time.Second

// runTeardowns ends a cluster for each way, all at the same time.
func (r *runner) runTeardowns(ctx context.Context, story Story) (results []Result, err error) {
	endings := r.newEndings(story)
	defer func() {
		for _, e := range endings {
			err = errors.Join(err, e.stop(r.Keep, r.Progress))
		}
	}()
	start := fmt.Sprintf("starting %d clusters with the programs of upstream", len(endings))
	err = r.Progress.Do(ctx, start, func(ctx context.Context) error {
		return eachEnding(endings, func(e *ending) error { return e.start(ctx, r) })
	})
	if err != nil {
		return nil, err
	}
	results = make([]Result, len(endings))
	err = eachEnding(endings, func(e *ending) (err error) {
		results[slices.Index(endings, e)], err = e.play(ctx, story)
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, result := range results {
		if err := r.Printer.End(result); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// newEndings returns an ending for each way.
func (r *runner) newEndings(story Story) []*ending {
	var printing sync.Mutex
	var endings []*ending
	for _, way := range ways() {
		begun := sync.OnceValue(time.Now)
		endings = append(endings, &ending{way: way, binaries: r.Binaries, session: &session{pair: way.name, namespace: teardownNamespace,
			say: func(what string) {
				printing.Lock()
				defer printing.Unlock()
				r.Printer.Step(Step{story.Name, way.name, time.Since(begun()).Seconds(), what})
			},
		}})
	}
	return endings
}

// eachEnding calls do for all at once.
func eachEnding(endings []*ending, do func(*ending) error) error {
	var group errgroup.Group
	for _, e := range endings {
		group.Go(func() error { return do(e) })
	}
	return group.Wait()
}

// start starts the cluster and its programs.
func (e *ending) start(ctx context.Context, r *runner) error {
	dir, err := os.MkdirTemp("", "exeunt-")
	if err != nil {
		return fmt.Errorf("make directory of the cluster: %w", err)
	}
	e.sandbox, err = sandbox.StartCluster(ctx, sandbox.ClusterConfig{
		Config:    sandbox.Config{Binaries: r.Binaries, Dir: dir, NoAuditLog: true},
		Manifests: []fs.FS{rbac.Manifests}, Died: r.fail,
	})
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	e.client = e.sandbox.Plane.Client()
	// The last of the volumes exists long before the answer.
	fault := fmt.Sprintf("[{method: CreateVolume, every: %d, times: 1, latency: %s, after: true}]", earlyVolumes+1, lateAnswer)
	faults := dir + "/storage-faults"
	return inOrder(
		func() error { return os.WriteFile(faults, []byte(fault), 0o600) },
		func() (err error) {
			e.driver, err = e.sandbox.StartDriver(ctx, sandbox.DriverConfig{Args: []string{"--faults=" + faults}})
			return err
		},
		func() error {
			_, err := e.sandbox.StartProvisioner(ctx, true, e.driver,
				sandbox.Controller{Args: []string{"--timeout=" + sidecarTimeout.String()}})
			return err
		},
		func() error {
			// The machines share two cores with the control planes of the other ways.
			_, err := e.sandbox.StartNodeLoops(ctx, "--node-monitor-grace-period=60s")
			return err
		},
		func() (err error) {
			e.balancers, err = e.sandbox.StartBalancersAndSnapshots(ctx, e.driver)
			return err
		},
		func() error {
			_, err := e.sandbox.StartCloud(ctx, 1, "--lease-duration=20s")
			return err
		},
		func() error { return e.awaitNode(ctx) })
}

// awaitNode waits until pods can be bound to the node.
func (e *ending) awaitNode(ctx context.Context) error {
	return e.await(ctx, "the node is ready", func(ctx context.Context) (bool, error) {
		nodes, err := e.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		unfit := slices.ContainsFunc(nodes.Items, func(n v1.Node) bool { return len(n.Spec.Taints) > 0 })
		return len(nodes.Items) > 0 && !unfit, nil
	})
}

// play fills the cluster, ends it, and counts what is left.
func (e *ending) play(ctx context.Context, story Story) (Result, error) {
	result := Result{Story: story.Name, Pair: e.way.name, NoVolumes: true}
	limited, cancel := context.WithTimeoutCause(ctx, storyLimit, fmt.Errorf("not within %s", storyLimit))
	defer cancel()
	if err := e.fill(limited); err != nil {
		return result, err
	}
	took, err := timed(func() error { return e.way.end(e, limited) })
	if err != nil {
		return result, err
	}
	e.say("the machines are deleted, and all programs end")
	if err := e.sandbox.KillBut(e.driver.Process); err != nil {
		return result, err
	}
	result.Measures, err = e.count(limited)
	result.Measures = append(result.Measures,
		Measure{Name: "seconds until the machines are deleted", Value: fmt.Sprintf("%.0f", took.Seconds())})
	return result, err
}

// count returns what the storage system and the cloud have.
func (e *ending) count(ctx context.Context) ([]Measure, error) {
	volumes, err := sandbox.StoredVolumes(ctx, e.driver.Socket)
	if err != nil {
		return nil, err
	}
	snapshots, err := sandbox.StoredSnapshots(ctx, e.driver.Socket)
	if err != nil {
		return nil, err
	}
	balancers, err := e.balancers.List()
	if err != nil {
		return nil, fmt.Errorf("read load balancers: %w", err)
	}
	kept := slices.Contains(volumes, e.kept)
	return []Measure{
		{Name: "disk to keep", Value: map[bool]string{true: "there", false: "gone"}[kept], Promised: "there"},
		{Name: "other disks left", Value: fmt.Sprint(len(slices.DeleteFunc(volumes,
			func(handle string) bool { return handle == e.kept }))), Promised: "0"},
		{Name: "snapshots left", Value: fmt.Sprint(len(snapshots)), Promised: "0"},
		{Name: "load balancers left", Value: fmt.Sprint(len(balancers)), Promised: "0"},
	}, nil
}

// stop ends what runs, and removes the directory unless it is kept.
func (e *ending) stop(keep bool, progress demo.Progress) error {
	if e.sandbox == nil {
		return nil
	}
	err := e.sandbox.Stop(context.Background())
	if keep {
		fmt.Fprintln(progress.Out, "everything is kept in", e.sandbox.Dir)
		return err
	}
	return errors.Join(err, os.RemoveAll(e.sandbox.Dir))
}

// checkTeardown returns an error if a program of the story is missing.
func checkTeardown(binaries sandbox.Binaries) error {
	return inOrder(
		func() error { return demo.CheckCloud(binaries) }, binaries.CheckUpstream, binaries.CheckBalancersAndSnapshots,
		func() error {
			_, err := binaries.Path("exeunt")
			return err
		})
}
