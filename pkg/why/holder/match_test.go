package holder

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/blocker/families"
)

func TestFittingContainers(t *testing.T) {
	controller := families.Controller{
		Name: "painter", Images: []string{"painter"}, Commands: []string{"painter"}, Labels: map[string]string{"app": "painter"}, Namespaces: []string{"paint"},
	}
	helper := corev1.Container{Name: "helper", Image: "registry.example/helper:v1"}
	for name, tc := range map[string]struct {
		workload workload
		want     []string
	}{
		"image with tag":        {withContainers(helper, corev1.Container{Name: "c", Image: "registry.example:5000/painter:v1"}), []string{"c"}},
		"image with digest":     {withContainers(helper, corev1.Container{Name: "c", Image: "registry.example/x/painter@sha256:0123"}), []string{"c"}},
		"command":               {withContainers(helper, corev1.Container{Name: "c", Image: "x", Command: []string{"/bin/painter", "--v=2"}}), []string{"c"}},
		"argument of a command": {withContainers(helper, corev1.Container{Name: "c", Image: "x", Command: []string{"/hyper", "painter"}}), []string{"c"}},
		"argument of the image": {withContainers(helper, corev1.Container{Name: "c", Image: "x", Args: []string{"painter"}}), []string{"c"}},
		"later argument":        {withContainers(helper, corev1.Container{Name: "c", Image: "x", Args: []string{"--like", "painter"}}), nil},
		"other image":           {withContainers(helper, corev1.Container{Name: "c", Image: "registry.example/my-painter:v1"}), nil},
		"sidecar that is an init container": {workload{spec: corev1.PodSpec{InitContainers: []corev1.Container{
			{Name: "c", Image: "painter", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)},
		}}}, []string{"c"}},
		"init container":             {workload{spec: corev1.PodSpec{InitContainers: []corev1.Container{{Name: "c", Image: "painter"}}}}, nil},
		"label of the workload":      {workload{labels: controller.Labels, spec: corev1.PodSpec{Containers: []corev1.Container{helper}}}, []string{"helper"}},
		"label of the pods":          {workload{podLabels: controller.Labels, spec: corev1.PodSpec{Containers: []corev1.Container{helper}}}, []string{"helper"}},
		"name in its namespace":      {workload{name: "painter", namespace: "paint", spec: corev1.PodSpec{Containers: []corev1.Container{helper}}}, []string{"helper"}},
		"name in another namespace":  {workload{name: "painter", namespace: "other", spec: corev1.PodSpec{Containers: []corev1.Container{helper}}}, nil},
		"pod of the name":            {workload{name: "painter", namespace: "paint", pod: &corev1.Pod{}, spec: corev1.PodSpec{Containers: []corev1.Container{helper}}}, nil},
		"image wins over the labels": {workload{labels: controller.Labels, spec: corev1.PodSpec{Containers: []corev1.Container{helper, {Name: "c", Image: "painter"}}}}, []string{"c"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, container := range fittingContainers(controller, tc.workload) {
				got = append(got, container.Name)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("the containers are %v, want %v", got, tc.want)
			}
		})
	}
}

func withContainers(containers ...corev1.Container) workload {
	return workload{spec: corev1.PodSpec{Containers: containers}}
}
