package holder

import (
	"context"
	"fmt"
	"slices"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/graceful/deadline"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/families"
)

// maxSuspects bounds the workloads that are listed.
const maxSuspects = 20

// suspected are the workloads that may work with a finalizer.
type suspected struct {
	suspects []families.Candidate
	// named: the first of them is the one.
	named bool
}

// Attribute returns the blocker of a finalizer that is not in the table. Its verdict is
// unknown: managedFields and workloads that fit are hints.
func (f Finder) Attribute(ctx context.Context, object *unstructured.Unstructured, finalizer string) blocker.Blocker {
	attribution := families.Attribute(object.GetManagedFields(), finalizer)
	key := fmt.Sprintf("suspects %s %s %v", object.GroupVersionKind(), finalizer, managerNames(attribution))
	found := cluster.Remember(f.Reader, key, func(r *cluster.Reader) (found suspected) {
		found.suspects, found.named = families.Suspects(Finder{Reader: r, Commands: f.Commands}.
			candidatesFor(ctx, object, finalizer, attribution))
		return found
	})
	suspects := found.suspects
	b := blocker.Blocker{
		Object: cluster.ObjectOf(object), Finalizer: finalizer, Reason: blocker.UnknownFinalizer, Verdict: blocker.Unknown,
		Since: blocker.Time(deadline.Of(object).Requested()), Evidence: attributionEvidence(attribution),
		Next: f.askStep(object, finalizer, suspects),
	}
	for _, suspect := range suspects[:min(maxSuspects, len(suspects))] {
		text := suspect.Workload + " fits: it " + suspect.Reasons()
		b.Evidence = append(b.Evidence, blocker.Evidence{Source: blocker.FromWorkload, Text: text})
	}
	if found.named {
		b.Holder = suspects[0].Workload
	}
	return b
}

// managerNames returns the names of the managers that own the finalizer.
func managerNames(attribution families.Attribution) []string {
	var names []string
	for _, manager := range attribution.Managers {
		names = append(names, manager.Name)
	}
	return names
}

// attributionEvidence returns who set the finalizer by managedFields, and who else writes
// the object: a program that keeps removing the finalizer owns none of it.
func attributionEvidence(attribution families.Attribution) []blocker.Evidence {
	const limit = 5
	var evidence []blocker.Evidence
	for _, text := range attribution.Text() {
		evidence = append(evidence, blocker.Evidence{Source: blocker.FromManagedFields, Text: text})
	}
	for _, other := range attribution.Others[:min(limit, len(attribution.Others))] {
		text := fmt.Sprintf("%s writes other fields of the object, last at %s", other.Name, blocker.Time(other.LastWrite))
		evidence = append(evidence, blocker.Evidence{Source: blocker.FromManagedFields, Text: text})
	}
	return evidence
}

// askStep returns how to find the program behind an unknown finalizer.
func (f Finder) askStep(object *unstructured.Unstructured, finalizer string, suspects []families.Candidate) string {
	const limit = 5
	commands := []string{
		f.Commands.Show(object.GetNamespace(), f.ResourceOf(object), object.GetName(), "--show-managed-fields"),
	}
	for _, suspect := range suspects[:min(limit, len(suspects))] {
		kind, name, _ := strings.Cut(suspect.Workload, " ")
		namespace, name, _ := strings.Cut(name, "/")
		commands = append(commands, f.Commands.Kubectl(namespace, "logs", strings.ToLower(kind)+"/"+name, "--all-containers",
			"--since=10m"))
	}
	return cluster.Steps("find the program that works with "+finalizer+", and let it clean up", commands...)
}

// candidatesFor returns the workloads, and the running pods that belong to none of them, and what of each fits the finalizer.
func (f Finder) candidatesFor(ctx context.Context, object *unstructured.Unstructured, finalizer string,
	attribution families.Attribution) []families.Candidate {
	workloads, _ := listWorkloads(ctx, f.Reader)
	leases, _ := cluster.List(ctx, f.Reader, cluster.Leases, cluster.Selection{})
	group := object.GroupVersionKind().Group
	servers := f.webhookServers(ctx, object, finalizer)
	accounts := f.accountsWithRights(ctx, object)
	fitting := slices.DeleteFunc(slices.Clone(leases), func(lease coordinationv1.Lease) bool {
		domain := leaseDomain(lease.Name)
		return !families.FitsGroup(finalizer, domain) && !families.FitsGroup(domain, group)
	})
	var candidates []families.Candidate
	add := func(w workload) {
		candidates = append(candidates, families.Candidate{
			Workload:    w.String(),
			ServesGroup: slices.ContainsFunc(servers, func(s server) bool { return s.selects(w) }),
			RunsManager: slices.ContainsFunc(attribution.Managers, func(m families.Manager) bool { return runsManager(w, m) }),
			HasRights:   accounts[w.account()],
			HoldsLease: slices.ContainsFunc(fitting, func(lease coordinationv1.Lease) bool {
				return lease.Namespace == w.namespace && isHeldBy(lease, w)
			}),
		})
	}
	for _, w := range workloads {
		add(w)
	}
	for _, pod := range lonePods(ctx, f.Reader, workloads) {
		add(pod.workload())
	}
	return candidates
}

// lonePod is what may tie a pod without a workload to a finalizer. Jobs have tens of thousands of pods.
type lonePod struct {
	namespace, name, node, account string
	labels                         map[string]string
	containers                     []corev1.Container
}

// lonePods returns the running pods that belong to none of the workloads. They are read once; one may be there twice.
func lonePods(ctx context.Context, r *cluster.Reader, workloads []workload) []lonePod {
	return cluster.Remember(r, "lone pods", func(r *cluster.Reader) (lone []lonePod) {
		known, inNamespace := map[string]bool{}, map[string][]workload{}
		for _, w := range workloads {
			known[w.String()] = true
			inNamespace[w.namespace] = append(inNamespace[w.namespace], w)
		}
		cluster.Each(ctx, r, cluster.Pods, cluster.Selection{}, func(page []corev1.Pod) {
			for i := range page {
				pod := &page[i]
				owned := hasEnded(*pod) || known[ownerOf(pod)] // most pods: selectors are slow
				if !owned && !slices.ContainsFunc(inNamespace[pod.Namespace], func(w workload) bool { return w.owns(pod) }) {
					lone = append(lone, newLonePod(pod))
				}
			}
		})
		return lone
	})
}

func newLonePod(pod *corev1.Pod) lonePod {
	lone := lonePod{namespace: pod.Namespace, name: pod.Name, node: pod.Spec.NodeName,
		account: pod.Spec.ServiceAccountName, labels: pod.Labels}
	for _, c := range pod.Spec.Containers {
		lone.containers = append(lone.containers, corev1.Container{Image: c.Image,
			Command: slices.Clone(firsts(c.Command, 2)), Args: slices.Clone(firsts(c.Args, 1))})
	}
	return lone
}

// workload returns the pod as far as candidates are compared by it.
func (p lonePod) workload() workload {
	return workload{kind: "Pod", namespace: p.namespace, name: p.name, podLabels: p.labels, pod: &corev1.Pod{},
		spec: corev1.PodSpec{NodeName: p.node, ServiceAccountName: p.account, Containers: p.containers}}
}

// ownerOf returns kind namespace/name of the workload that controls the pod, "" for none. A
// ReplicaSet has the name of its Deployment and a hash.
func ownerOf(pod *corev1.Pod) string {
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		return ""
	}
	kind, name := owner.Kind, owner.Name
	if end := strings.LastIndex(name, "-"); kind == "ReplicaSet" && end > 0 {
		kind, name = "Deployment", name[:end]
	}
	return kind + " " + pod.Namespace + "/" + name
}

// leaseDomain returns the domain of the Lease's name: operators name Leases "0a1b2c3d.DOMAIN".
func leaseDomain(name string) string {
	_, domain, _ := strings.Cut(name, ".")
	return domain
}

// runsManager reports whether a container of the workload has the manager as its image or
// command. Also names that many programs share count, such as "manager": all that fit are listed.
func runsManager(w workload, manager families.Manager) bool {
	if agent := manager.Agent(); manager.Name == "" || agent == families.ByHand {
		return false
	}
	named := families.Controller{Images: []string{manager.Name}, Commands: []string{manager.Name}}
	return slices.ContainsFunc(w.spec.Containers, func(c corev1.Container) bool {
		return named.HasImage(c.Image) || startsController(named, c)
	})
}
