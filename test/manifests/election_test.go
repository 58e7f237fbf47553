package manifests

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// electing has the leader election flag of each program, by container name.
var electing = map[string]string{"pv-controller": "--leader-elect", "garbage-collector": "--leader-elect",
	"node-terminator": "--leader-elect", "csi-provisioner": "--leader-election"}

func TestUpdatesNeverRunTwoLeaders(t *testing.T) {
	for name, objects := range renderings(t) {
		t.Run(name, func(t *testing.T) {
			for _, deployment := range deploymentsIn(t, objects) {
				pod := deployment.Spec.Template.Spec
				for _, c := range pod.Containers {
					flag, elects := electing[c.Name]
					switch {
					case !elects || switchedOn(c.Args, flag):
					case deployment.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType && *deployment.Spec.Replicas == 1:
					default:
						t.Errorf("%s: %d replicas of %s have no %s and are not recreated one by one", deployment.Name,
							*deployment.Spec.Replicas, c.Name, flag)
					}
				}
			}
		})
	}
}

func TestElectionFlagsComeWithLeaseRights(t *testing.T) {
	for name, objects := range renderings(t) {
		t.Run(name, func(t *testing.T) {
			for _, deployment := range deploymentsIn(t, objects) {
				pod := deployment.Spec.Template.Spec
				if pod.Containers[0].Name == "alive-controller" {
					continue // has no flag, and competes for a Lease once deploy/alive/armed is applied
				}
				lease := deployment.Namespace
				if electing[pod.Containers[0].Name] == "--leader-elect" {
					lease = "kube-system"
				}
				granted := grantedIn(t, objects, lease, pod.ServiceAccountName)
				for _, verb := range []string{"get", "create", "update"} {
					if !slices.ContainsFunc(granted, func(r rbacv1.PolicyRule) bool {
						return slices.Contains(r.Resources, "leases") && slices.Contains(r.Verbs, verb)
					}) {
						t.Errorf("%s may not %s leases in %s", deployment.Name, verb, lease)
					}
				}
			}
		})
	}
}

// The chart enables leader election, so that several replicas never run without it.
func TestChartFlagsKeepLeaderElectionOn(t *testing.T) {
	off := values{"extraArgs": []any{"--leader-election=false"}}
	for name, given := range map[string]values{
		"provisioner":   {"provisioner": values{"deployment": off}},
		"pv-controller": {"pvController": values{"extraArgs": []any{"--leader-elect=false"}}},
		"collector":     {"garbageCollector": values{"extraArgs": []any{"--leader-elect=false"}}},
		"terminator":    {"nodeTerminator": values{"extraArgs": []any{"--leader-elect=false"}}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := render(loaded(t), given); err == nil || !strings.Contains(err.Error(), "extraArgs/0") {
				t.Errorf("the flag was accepted: %v", err)
			}
		})
	}
}

// switchedOn reports whether a boolean flag is on with the arguments.
func switchedOn(args []string, flag string) bool {
	on := false
	for _, arg := range args {
		name, value, given := strings.Cut(arg, "=")
		if name == flag {
			on = !given || value == "true"
		}
	}
	return on
}

// deploymentsIn returns the Deployments among the objects, with defaulted replicas.
func deploymentsIn(t *testing.T, objects []*unstructured.Unstructured) []appsv1.Deployment {
	t.Helper()
	var found []appsv1.Deployment
	for _, object := range objects {
		if object.GetKind() != "Deployment" {
			continue
		}
		one := int32(1)
		deployment := appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: &one}}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &deployment); err != nil {
			t.Fatalf("read %s: %v", nameOf(object), err)
		}
		found = append(found, deployment)
	}
	return found
}

// grantedIn returns the rules that a service account has through Roles of a namespace.
func grantedIn(t *testing.T, objects []*unstructured.Unstructured, namespace, account string) []rbacv1.PolicyRule {
	t.Helper()
	rules := rulesOf(t, objects)
	var granted []rbacv1.PolicyRule
	for _, object := range objects {
		var binding rbacv1.RoleBinding
		if object.GetKind() != "RoleBinding" || object.GetNamespace() != namespace {
			continue
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &binding); err != nil {
			t.Fatalf("read %s: %v", nameOf(object), err)
		}
		if slices.ContainsFunc(binding.Subjects,
			func(s rbacv1.Subject) bool { return s.Kind == rbacv1.ServiceAccountKind && s.Name == account }) {
			granted = append(granted, rules[binding.RoleRef.Kind+" "+namespace+"/"+binding.RoleRef.Name]...)
		}
	}
	return granted
}

// podsOf returns the pod templates of all workloads among the objects.
func podsOf(t *testing.T, objects []*unstructured.Unstructured) []v1.PodSpec {
	t.Helper()
	var pods []v1.PodSpec
	for _, deployment := range deploymentsIn(t, objects) {
		pods = append(pods, deployment.Spec.Template.Spec)
	}
	return pods
}
