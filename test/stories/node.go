package stories

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/pkg/termination"
	"github.com/exeunt-io/exeunt/test/cloudmock/machines"
	"github.com/exeunt-io/exeunt/test/demo"
	"github.com/exeunt-io/exeunt/test/nodeend"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

const (
	// oldNodes end, and one more stays.
	oldNodes = 3
	// nodePeriod is how long the end of a node may take, and watched how long the story watches.
	nodePeriod = 14 * time.Second
	watched    = 20 * time.Second
	// podsOnNodes is the number of pods on the nodes that end.
	podsOnNodes = 6
)

// nodeSide is one side of the story, on nodes and in a namespace of its own.
type nodeSide struct {
	*session
	// old are the nodes that end, spare is the one that stays.
	old   []string
	spare string
	// ending is what is measured.
	ending nodeend.Case
}

// runNodes runs the story with all pairs side by side, in one cluster.
func (r *runner) runNodes(ctx context.Context, story Story) (results []Result, err error) {
	cluster, err := demo.StartCluster(ctx, demo.ClusterConfig{Binaries: r.Binaries, Keep: r.Keep, Progress: r.Progress,
		Died: r.fail})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, cluster.Stop()) }()
	cloud, err := cluster.StartCloud(ctx, len(r.Pairs)*(oldNodes+1))
	if err != nil {
		return nil, err
	}
	sides := r.newSides(story, cluster)
	err = inOrder(
		func() error { return eachSide(sides, func(s *nodeSide) error { return s.prepare(ctx) }) },
		func() error { return killKubelets(ctx, sides, cloud) },
		func() error { return eachSide(sides, func(s *nodeSide) error { return s.endNodes(ctx) }) },
		func() error { return eachSide(sides, func(s *nodeSide) error { return s.tellReports(ctx) }) })
	if err != nil {
		return nil, err
	}
	events, err := cloud.Events()
	if err != nil {
		return nil, err
	}
	for _, side := range sides {
		result := side.result(story, nodeend.Measure(side.ending, events))
		if err := r.Printer.End(result); err != nil {
			return nil, err
		}
		results = append(results, result)
	}
	return results, nil
}

// newSides returns a side for each pair. The nodes of a side follow those of the side before.
func (r *runner) newSides(story Story, cluster *demo.Cluster) []*nodeSide {
	var printing sync.Mutex
	begun := time.Now()
	var sides []*nodeSide
	for i, pair := range r.Pairs {
		side := &nodeSide{session: &session{
			cluster: cluster, client: cluster.Client(), pair: pair, namespace: string(pair),
			say: func(what string) {
				printing.Lock()
				defer printing.Unlock()
				r.Printer.Step(Step{story.Name, pair, time.Since(begun).Seconds(), what})
			},
		}}
		for n := range oldNodes + 1 {
			side.old = append(side.old, fmt.Sprintf("mock-%d", i*(oldNodes+1)+n))
		}
		side.old, side.spare = side.old[:oldNodes], side.old[oldNodes]
		sides = append(sides, side)
	}
	return sides
}

// eachSide calls do for all sides at once.
func eachSide(sides []*nodeSide, do func(*nodeSide) error) error {
	var group errgroup.Group
	for _, side := range sides {
		group.Go(func() error { return do(side) })
	}
	return group.Wait()
}

// prepare creates the pods on the nodes that are to end, and then makes the other node known to them.
func (s *nodeSide) prepare(ctx context.Context) error {
	return inOrder(
		func() error {
			for _, node := range s.old {
				if err := s.cluster.LabelNode(ctx, node, map[string]string{"side": s.namespace, "pool": s.namespace}); err != nil {
					return err
				}
			}
			return s.cluster.ApplyWorkloads(ctx, s.namespace)
		},
		func() error {
			return s.await(ctx, "all pods are ready", func(ctx context.Context) (bool, error) { return s.arePodsReady(ctx) })
		},
		func() error { return s.cluster.LabelNode(ctx, s.spare, map[string]string{"side": s.namespace}) },
		func() error { return s.requestDeadline(ctx) })
}

// arePodsReady reports whether all pods are ready, and keeps them.
func (s *nodeSide) arePodsReady(ctx context.Context) (bool, error) {
	list, err := s.client.CoreV1().Pods(s.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, err
	}
	s.ending.Pods = nil
	for _, pod := range list.Items {
		ready := slices.ContainsFunc(pod.Status.Conditions, func(c v1.PodCondition) bool {
			return c.Type == v1.PodReady && c.Status == v1.ConditionTrue
		})
		if !ready {
			return false, nil
		}
		measured := nodeend.PodFrom(&pod)
		if pod.Labels["app"] == "web" {
			measured.Guard = "web"
		}
		s.ending.Pods = append(s.ending.Pods, measured)
	}
	return len(s.ending.Pods) == podsOnNodes, nil
}

// requestDeadline gives the nodes of our side their deadline, and waits until they are protected.
func (s *nodeSide) requestDeadline(ctx context.Context) error {
	if s.pair != demo.Ours {
		return nil
	}
	s.say(fmt.Sprintf("kubectl label node %s %s=%s", strings.Join(s.old, " "), termination.Label, nodePeriod))
	for _, node := range s.old {
		if err := s.cluster.LabelNode(ctx, node, map[string]string{termination.Label: nodePeriod.String()}); err != nil {
			return err
		}
	}
	return s.await(ctx, "the nodes have our finalizer", func(ctx context.Context) (bool, error) {
		for _, name := range s.old {
			node, err := s.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
			if err != nil || !termination.Protected(node) {
				return false, err
			}
		}
		return true, nil
	})
}

// killKubelets ends the kubelets of the nodes with a disk. Their machines and pods run on.
func killKubelets(ctx context.Context, sides []*nodeSide, cloud *sandbox.Cloud) error {
	var faults []machines.Fault
	for _, side := range sides {
		i := slices.IndexFunc(side.ending.Pods, func(p nodeend.Pod) bool { return p.Name == side.namespace+"/db-0" })
		node := side.ending.Pods[i].Node
		side.say("the kubelet of " + node + " dies, and db-0 writes on to its disk there")
		side.ending.Silent = []string{node}
		faults = append(faults, machines.Fault{Node: node, Kind: machines.KubeletDead})
	}
	return cloud.SetFaults(ctx, faults...)
}

// endNodes ends the nodes, and waits until the story is over.
func (s *nodeSide) endNodes(ctx context.Context) error {
	s.ending.Requested, s.ending.Period = time.Now(), nodePeriod
	s.ending.Allowed, s.ending.Disks = map[string]int{"web": 1}, []string{demo.Disk(s.namespace)}
	over := time.After(watched)
	end := s.drainAndDelete
	if s.pair == demo.Ours {
		end = s.deleteNodes
	}
	if err := end(ctx, s.old...); err != nil {
		return err
	}
	gone := map[string]bool{}
	for {
		select {
		case <-over:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(poll):
			if err := s.tellGone(ctx, gone); err != nil {
				return err
			}
		}
	}
}

// tellGone tells which nodes are gone, once for each.
func (s *nodeSide) tellGone(ctx context.Context, gone map[string]bool) error {
	for _, node := range s.old {
		if gone[node] {
			continue
		}
		_, err := s.client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			gone[node] = true
			s.say("node " + node + " is gone")
		case err != nil:
			return fmt.Errorf("read node %s: %w", node, err)
		}
	}
	return nil
}

// tellReports tells whom the reports of our side name.
func (s *nodeSide) tellReports(ctx context.Context) error {
	if s.pair != demo.Ours {
		return nil
	}
	list, err := s.client.CoreV1().ConfigMaps(deploy.Namespace).List(ctx,
		metav1.ListOptions{LabelSelector: termination.ReportLabel})
	if err != nil {
		return fmt.Errorf("list reports: %w", err)
	}
	s.say("kubectl get configmaps -n " + deploy.Namespace + " -l " + termination.ReportLabel)
	for _, stored := range list.Items {
		var report termination.Report
		if err := json.Unmarshal([]byte(stored.Data[termination.ReportKey]), &report); err != nil {
			return fmt.Errorf("decode report %s: %w", stored.Name, err)
		}
		for _, cut := range report.CutShort {
			s.say(fmt.Sprintf("  %s: %s of %s: %s, %d s given, %d s missing", report.Node, cut.Pod, cut.Owner, cut.Reason,
				cut.Given, cut.Missing))
		}
	}
	return nil
}

// drainAndDelete does what administrators do with kubectl, for all nodes at once.
func (s *nodeSide) drainAndDelete(ctx context.Context, nodes ...string) error {
	var group errgroup.Group
	for _, node := range nodes {
		group.Go(func() error {
			s.say(fmt.Sprintf("kubectl drain %s --force --ignore-daemonsets --delete-emptydir-data --timeout=%s", node,
				nodePeriod))
			if err := nodeend.Drain(ctx, s.client, node, nodePeriod); ctx.Err() != nil {
				return context.Cause(ctx)
			} else if err != nil {
				s.say(node + ": error: " + err.Error())
			}
			return s.deleteNodes(ctx, node)
		})
	}
	return group.Wait()
}

// deleteNodes deletes nodes.
func (s *nodeSide) deleteNodes(ctx context.Context, nodes ...string) error {
	s.say("kubectl delete node " + strings.Join(nodes, " ") + " --wait=false")
	for _, node := range nodes {
		if err := ignoreGone(s.client.CoreV1().Nodes().Delete(ctx, node, metav1.DeleteOptions{}), "delete node"); err != nil {
			return err
		}
	}
	return nil
}

// result returns what was measured. Ours promises what does not depend on the pods.
func (s *nodeSide) result(story Story, o nodeend.Outcome) Result {
	whole := len(slices.DeleteFunc(slices.Clone(o.Graces), func(g nodeend.Grace) bool { return !g.Whole() }))
	return Result{Story: story.Name, Pair: s.pair, NoVolumes: true, Measures: []Measure{
		{Name: fmt.Sprintf("pods with their whole grace, of %d", podsOnNodes), Value: fmt.Sprint(whole)},
		{Name: "pods killed that would have ended in time", Value: fmt.Sprint(len(o.CutInTime)), Promised: "0"},
		{Name: "pods ended early against budget or do-not-disrupt", Value: fmt.Sprint(o.Early), Promised: "0"},
		{Name: "pods forced at the last moment for their grace", Value: fmt.Sprint(o.Bypasses - o.Early)},
		{Name: "seconds past the deadline until all pods are off", Value: o.Late(), Promised: "0"},
		{Name: "seconds until the disk is attached elsewhere", Value: o.Disk(watched, 1)},
		{Name: "two writers on the disk", Value: fmt.Sprint(o.TwoWriters), Promised: "0"},
	}}
}
