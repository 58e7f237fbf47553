package api

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/exeunt-io/exeunt/internal/terminal"
	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/why/backend"
	"github.com/exeunt-io/exeunt/pkg/why/chain"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// server is a service that the API server calls, and its observed state.
type server struct {
	namespace, name string
	state           backend.State
	selector        string
	evidence        []blocker.Evidence
}

// lookAtServer reads the service, its endpoints and its pods.
func lookAtServer(ctx context.Context, e chain.Explorer, namespace, name string) server {
	s := server{namespace: namespace, name: name}
	service, presence := cluster.Get(ctx, e.Reader(), cluster.Services, namespace, name)
	switch {
	case presence == cluster.Absent:
		s.state = backend.Absent
		s.add(blocker.FromList, "the service %s/%s does not exist", namespace, name)
		return s
	case presence == cluster.Unseen || service.Spec.Type == corev1.ServiceTypeExternalName:
		s.add(blocker.FromList, "the endpoints of the service %s/%s were not seen", namespace, name)
		return s
	}
	var seen backend.Seen
	seen.Slices, seen.SlicesComplete = cluster.List(ctx, e.Reader(), cluster.EndpointSlices, cluster.Selection{
		Namespace: namespace, Labels: labels.Set{discoveryv1.LabelServiceName: name}.String(),
	})
	seen.PodsComplete, seen.NoSelector = true, len(service.Spec.Selector) == 0
	if !seen.NoSelector {
		s.selector = labels.Set(service.Spec.Selector).String()
		seen.Pods, seen.PodsComplete = cluster.List(ctx, e.Reader(), cluster.Pods,
			cluster.Selection{Namespace: namespace, Labels: s.selector})
		seen.Wanted, seen.WantedIsUnknown = isWanted(ctx, e, namespace, service.Spec.Selector)
	}
	s.state = backend.Judge(seen)
	s.add(blocker.FromList, "the service %s/%s is %s: %s, %s", namespace, name, stateText[s.state],
		terminal.Count(len(seen.Slices), "EndpointSlice"), terminal.Count(len(seen.Pods), "pod"))
	return s
}

// stateText says in words the observed state of a service.
var stateText = map[backend.State]string{
	backend.Unseen:   "not known",
	backend.Absent:   "missing",
	backend.Stopped:  "without endpoints, and nothing will run its pods",
	backend.Crashing: "without ready endpoints, and its pods report an error",
	backend.Unready:  "without ready endpoints",
	backend.Starting: "without ready endpoints, and its pods are starting",
	backend.Ready:    "ready",
}

func (s *server) add(source blocker.Source, format string, values ...any) {
	s.evidence = append(s.evidence, evidence(source, format, values...))
}

// isWanted reports whether a workload wants replicas of the pods that the selector selects.
func isWanted(ctx context.Context, e chain.Explorer, namespace string, selector labels.Set) (wanted, unknown bool) {
	in := cluster.Selection{Namespace: namespace}
	deployments, seenDeployments := cluster.List(ctx, e.Reader(), cluster.Deployments, in)
	sets, seenSets := cluster.List(ctx, e.Reader(), cluster.StatefulSets, in)
	daemons, seenDaemons := cluster.List(ctx, e.Reader(), cluster.DaemonSets, in)
	selects := func(template corev1.PodTemplateSpec) bool {
		return selector.AsSelector().Matches(labels.Set(template.Labels))
	}
	for i := range deployments {
		wanted = wanted || wantsReplicas(deployments[i].Spec.Replicas) && selects(deployments[i].Spec.Template)
	}
	for i := range sets {
		wanted = wanted || wantsReplicas(sets[i].Spec.Replicas) && selects(sets[i].Spec.Template)
	}
	for i := range daemons {
		wanted = wanted || selects(daemons[i].Spec.Template)
	}
	return wanted, slices.Contains([]bool{seenDeployments, seenSets, seenDaemons}, false)
}

func wantsReplicas(replicas *int32) bool { return replicas == nil || *replicas > 0 }

// commands returns commands that show the service and its pods.
func (s *server) commands(e chain.Explorer) []string {
	list := []string{e.Commands().Kubectl(s.namespace, "get", "service,endpointslices", "-l",
		discoveryv1.LabelServiceName+"="+s.name)}
	if s.selector != "" {
		list = append(list, e.Commands().Kubectl(s.namespace, "get", "pods", "-l", s.selector))
	}
	return list
}
