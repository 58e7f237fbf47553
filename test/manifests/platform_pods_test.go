package manifests

import (
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/deploy"
)

// installations are the manifests and the chart with every program, and with the namespace of the first step.
func installations(t *testing.T) map[string][]*unstructured.Unstructured {
	t.Helper()
	manifests := applied(t, strings.Fields("kubectl apply -f deploy/namespace.yaml"))
	for _, program := range []string{"pv-controller", "garbage-collector", "node-terminator", "alive"} {
		manifests = append(manifests, kustomized(t, program)...)
	}
	return map[string][]*unstructured.Unstructured{"manifests": manifests, "chart": templated(t, values{
		"garbageCollector": values{"enabled": true}, "nodeTerminator": values{"enabled": true},
		"alive": values{"enabled": true},
	})}
}

// GKE creates pods of a critical priority only in namespaces with a quota for them.
func TestCriticalPodsHaveTheQuotaThatGKEWants(t *testing.T) {
	for name, objects := range installations(t) {
		pods := int64(0)
		for _, deployment := range deploymentsIn(t, objects) {
			priority := deployment.Spec.Template.Spec.PriorityClassName
			if deployment.Namespace != deploy.Namespace || priority != "system-cluster-critical" {
				t.Errorf("%s: %s/%s has the priority %q", name, deployment.Namespace, deployment.Name, priority)
			}
			pods += 2 * int64(*deployment.Spec.Replicas) // an update starts new ones first
		}
		quotas := decoded[v1.ResourceQuota](t, objects, "ResourceQuota")
		if len(quotas) != 1 || quotas[0].Namespace != deploy.Namespace {
			t.Fatalf("%s: the quotas are %+v", name, quotas)
		}
		spec := quotas[0].Spec
		// In kube-system, where a release may be, each of 5,000 nodes may have 30 such pods.
		if limit := spec.Hard[v1.ResourcePods]; len(spec.Hard) != 1 || limit.Value() < pods+5000*30 || pods < 14 {
			t.Errorf("%s: the quota is %v for %d pods", name, spec.Hard, pods)
		}
		if spec.ScopeSelector == nil || len(spec.Scopes) > 0 || len(spec.ScopeSelector.MatchExpressions) != 1 ||
			spec.ScopeSelector.MatchExpressions[0].ScopeName != v1.ResourceQuotaScopePriorityClass ||
			!slices.Contains(spec.ScopeSelector.MatchExpressions[0].Values, "system-cluster-critical") {
			t.Errorf("%s: the scope is %+v", name, spec)
		}
	}
	for _, quota := range decoded[v1.ResourceQuota](t, templated(t, everything()), "ResourceQuota") {
		t.Errorf("without the priority the chart has the quota %s", quota.Name)
	}
}

// OpenShift refuses a user outside of the range of the namespace, and Pod Security a pod of the root user.
func TestPodsTakeTheUserOfPlatform(t *testing.T) {
	for name, objects := range installations(t) {
		for _, pod := range podsOf(t, objects) {
			security := pod.SecurityContext
			if security.RunAsUser != nil || security.RunAsGroup != nil || security.FSGroup != nil ||
				!ptr.Deref(security.RunAsNonRoot, false) || security.SeccompProfile.Type != v1.SeccompProfileTypeRuntimeDefault {
				t.Errorf("%s: the pod of %s has %+v", name, pod.Containers[0].Name, security)
			}
			own := pod.Containers[0].SecurityContext
			if len(pod.Containers) != 1 || own.RunAsUser != nil || *own.AllowPrivilegeEscalation ||
				!slices.Equal(own.Capabilities.Drop, []v1.Capability{"ALL"}) {
				t.Errorf("%s: the container %s has %+v", name, pod.Containers[0].Name, own)
			}
		}
	}
}

// node-terminator refuses a socket of another user, and the image of the sidecar may name any.
func TestBothEndsOfSocketHaveOneUser(t *testing.T) {
	for name, pod := range map[string]v1.PodSpec{
		"manifests":   terminatorPod(t, terminatorWith(t, "socket")),
		"chart":       terminatorPod(t, templated(t, everything())),
		"mock driver": podsOf(t, kustomized(t, "overlays/csimock"))[0],
	} {
		if len(pod.Containers) != 2 || ptr.Deref(pod.SecurityContext.RunAsUser, 0) != 65532 ||
			!*pod.SecurityContext.RunAsNonRoot {
			t.Errorf("%s: %d containers, %+v", name, len(pod.Containers), pod.SecurityContext)
		}
	}
}

// A pruned NodeClaim CRD deletes all claims, which end their nodes; a pruned namespace deletes all programs.
func TestPruneKeepsWhatEndsTheRest(t *testing.T) {
	objects := slices.Concat(applied(t, strings.Fields("kubectl apply -f deploy/namespace.yaml")),
		kustomized(t, "node-terminator/nodeclaim"))
	kept := 0
	for _, object := range objects {
		if object.GetKind() != "Namespace" && object.GetKind() != "CustomResourceDefinition" {
			continue
		}
		kept++
		annotations := object.GetAnnotations()
		if annotations["argocd.argoproj.io/sync-options"] != "Prune=false,Delete=false" ||
			annotations["kustomize.toolkit.fluxcd.io/prune"] != "disabled" {
			t.Errorf("%s may be pruned: %v", nameOf(object), annotations)
		}
	}
	if kept != 2 {
		t.Errorf("%d objects are kept", kept)
	}
}

// Each program serves its health once the API server has answered. Until then a liveness probe would end it.
func TestProgramsOutliveAnAbsentAPIServer(t *testing.T) {
	for name, objects := range installations(t) {
		for _, pod := range podsOf(t, objects) {
			container := pod.Containers[0]
			probe := container.StartupProbe
			if probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Path != container.LivenessProbe.HTTPGet.Path ||
				probe.PeriodSeconds*probe.FailureThreshold < 3600 {
				t.Errorf("%s: the startup probe of %s is %+v", name, container.Name, probe)
			}
		}
	}
}
