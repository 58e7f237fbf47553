package holder

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/why/families"
)

func TestFittingContainers(t *testing.T) {
	controller := families.Controller{
		Name: "painter", Images: []string{"painter"}, Commands: []string{"painter"},
		Labels: map[string]string{"app": "painter"}, Namespaces: []string{"paint"},
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
		"init container":        {workload{spec: corev1.PodSpec{InitContainers: []corev1.Container{{Name: "c", Image: "painter"}}}}, nil},
		"label of the workload": {workload{labels: controller.Labels, spec: corev1.PodSpec{Containers: []corev1.Container{helper}}}, []string{"helper"}},
		"label of the pods":     {workload{podLabels: controller.Labels, spec: corev1.PodSpec{Containers: []corev1.Container{helper}}}, []string{"helper"}},
		"name in its namespace": {workload{name: "painter", namespace: "paint",
			spec: corev1.PodSpec{Containers: []corev1.Container{helper}}}, []string{"helper"}},
		"name in another namespace": {workload{name: "painter", namespace: "other", spec: corev1.PodSpec{Containers: []corev1.Container{helper}}}, nil},
		"pod of the name": {workload{name: "painter", namespace: "paint", pod: &corev1.Pod{},
			spec: corev1.PodSpec{Containers: []corev1.Container{helper}}}, nil},
		"image wins over the labels": {workload{labels: controller.Labels,
			spec: corev1.PodSpec{Containers: []corev1.Container{helper, {Name: "c", Image: "painter"}}}}, []string{"c"}},
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

func TestProvisionerIsFoundByItsName(t *testing.T) {
	set := func(image string, settings ...string) corev1.Container {
		c := corev1.Container{Name: "c", Image: image}
		for _, setting := range settings {
			if name, value, isVariable := strings.Cut(setting, "="); isVariable && !strings.HasPrefix(setting, "-") {
				c.Env = append(c.Env, corev1.EnvVar{Name: name, Value: value})
			} else {
				c.Args = append(c.Args, setting)
			}
		}
		return c
	}
	for name, tc := range map[string]struct {
		provisioner string
		container   corev1.Container
		want        bool
	}{
		"by its image":               {"rancher.io/local-path", set("rancher/local-path-provisioner:v0.0.31"), true},
		"image, set to another name": {"rancher.io/local-path", set("rancher/local-path-provisioner:v0.0.31", "--provisioner-name=other.io/path"), false},
		"image, set to its name":     {"other.io/path", set("rancher/local-path-provisioner:v0.0.31", "--provisioner-name=other.io/path"), true},
		"by a variable": {"cluster.local/nfs", set("r/nfs-subdir-external-provisioner:v4",
			"PROVISIONER_NAME=cluster.local/nfs", "NFS_PATH=/data"), true},
		"by an argument":          {"example.com/nfs", set("r/x", "-provisioner=example.com/nfs"), true},
		"a program that names it": {"example.com/nfs", set("r/x", "--storage-class-of=example.com/nfs"), false},
		"another provisioner":     {"example.com/nfs", set("r/x", "PROVISIONER_NAME=example.com/other"), false},
	} {
		if got := len(fittingContainers(families.Provisioner(tc.provisioner),
			withContainers(tc.container))) == 1; got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}
