package manifests

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// terminatorWith renders node-terminator with a component, as an administrator's kustomization does.
func terminatorWith(t *testing.T, component string) []*unstructured.Unstructured {
	t.Helper()
	return kustomizedSite(t, map[string]string{"kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1beta1\n" +
		"kind: Kustomization\nresources: [../deploy/node-terminator]\ncomponents: [../deploy/node-terminator/" + component + "]\n"})
}

// terminatorPod returns the pod of node-terminator.
func terminatorPod(t *testing.T, objects []*unstructured.Unstructured) v1.PodSpec {
	t.Helper()
	return podsOf(t, []*unstructured.Unstructured{find(t, objects, "Deployment", "node-terminator")})[0]
}

// withoutHooks returns the objects that belong to the release itself.
func withoutHooks(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(objects), func(object *unstructured.Unstructured) bool {
		return object.GetAnnotations()["helm.sh/hook"] != ""
	})
}

// The chart and the manifests run node-terminator alike.
func TestChartRunsTerminatorAsManifests(t *testing.T) {
	sidecar := values{
		"name": "instances", "image": "registry.invalid/instances:v1", "imagePullPolicy": "IfNotPresent",
		"args":      []any{"--socket=/run/instances/socket"},
		"resources": values{"requests": values{"cpu": "10m", "memory": "32Mi"}},
	}
	for name, tc := range map[string]struct {
		manifests []*unstructured.Unstructured
		values    values
	}{
		"none":   {kustomized(t, "node-terminator"), values{}},
		"manual": {terminatorWith(t, "manual"), values{"instances": "manual"}},
		"socket": {terminatorWith(t, "socket"), values{"instances": "socket", "sidecar": sidecar}},
	} {
		t.Run(name, func(t *testing.T) {
			tc.values["enabled"] = true
			inChart := templated(t, values{"nodeTerminator": tc.values})
			want, got := terminatorPod(t, tc.manifests), terminatorPod(t, inChart)
			want.Affinity, got.Affinity = nil, nil // it selects pods of the release
			want.Containers[0].Image = got.Containers[0].Image
			want.Containers[0].Args = append(want.Containers[0].Args, "--v=2")
			slices.Sort(want.Containers[0].Args)
			slices.Sort(got.Containers[0].Args)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("pods of the manifests (-) and of the chart (+):\n%s", diff)
			}
			if !slices.Contains(got.Containers[0].Args, "--instances="+name) {
				t.Errorf("the arguments are %v", got.Containers[0].Args)
			}
		})
	}
}

// Who reaches the socket can turn off machines. node-terminator refuses a directory that others may write without the
// sticky bit, which a volume in memory has, and a socket of another user.
func TestOnlyThePodReachesTheSocket(t *testing.T) {
	for name, objects := range map[string][]*unstructured.Unstructured{
		"manifests": terminatorWith(t, "socket"), "chart": templated(t, everything()),
	} {
		pod := terminatorPod(t, objects)
		var volume v1.Volume
		for _, volume = range pod.Volumes {
			if volume.Name == "instances" {
				break
			}
		}
		if volume.EmptyDir == nil || volume.EmptyDir.Medium != v1.StorageMediumMemory {
			t.Errorf("%s: the socket is in %+v", name, volume)
		}
		for _, container := range pod.Containers {
			if !slices.Contains(container.VolumeMounts, v1.VolumeMount{Name: "instances", MountPath: "/run/instances"}) {
				t.Errorf("%s: %s does not reach the socket: %v", name, container.Name, container.VolumeMounts)
			}
			if security := container.SecurityContext; security == nil || security.RunAsUser != nil {
				t.Errorf("%s: %s runs as another user", name, container.Name)
			}
		}
		if len(pod.Containers) != 2 || pod.HostNetwork || pod.HostPID ||
			!slices.Contains(pod.Containers[0].Args, "--instances-socket=/run/instances/socket") {
			t.Errorf("%s: the pod is %+v", name, pod)
		}
	}
}

// Without a value nothing turns a machine off.
func TestTerminatorTurnsNoMachineOffByDefault(t *testing.T) {
	for name, objects := range map[string][]*unstructured.Unstructured{
		"manifests": kustomized(t, "node-terminator"), "chart": templated(t, terminatorOn),
	} {
		pod := terminatorPod(t, objects)
		if len(pod.Containers) != 1 || !slices.Contains(pod.Containers[0].Args, "--instances=none") ||
			strings.Contains(strings.Join(pod.Containers[0].Args, " "), "socket") {
			t.Errorf("%s: the containers are %+v", name, pod.Containers)
		}
	}
}

func TestNotesWarnBeforeNodesAreLabeled(t *testing.T) {
	for instances, runsOn := range map[string]bool{"none": true, "manual": false} {
		notes := notesOf(t, values{"nodeTerminator": values{"enabled": true, "instances": instances}})
		for text, want := range map[string]bool{
			"warnings in docs/node-termination.md": true, "exeunt.io/termination-grace-period=30m": true, "runs on": runsOn,
		} {
			if strings.Contains(notes, text) != want {
				t.Errorf("%s: the notes say %q: %t:\n%s", instances, text, !want, notes)
			}
		}
	}
	if notes := notesOf(t, values{}); strings.Contains(notes, "node-terminator") {
		t.Errorf("notes without node-terminator:\n%s", notes)
	}
}
