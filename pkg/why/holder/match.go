package holder

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/exeunt-io/exeunt/pkg/why/families"
)

func labelSet(set map[string]string) labels.Set { return labels.Set(set) }

// fittingContainers returns the containers of the workload that run the controller: by
// image or command, or all containers of a workload that has the controller's labels or name.
func fittingContainers(controller families.Controller, w workload) []corev1.Container {
	all := slices.Concat(w.spec.Containers, restartableInits(w.spec))
	var fitting []corev1.Container
	for _, container := range all {
		known := controller.HasImage(container.Image) || startsController(controller, container)
		if name := provisionerOf(container); controller.Provisioner != "" && name != "" {
			known = name == controller.Provisioner
		}
		if known {
			fitting = append(fitting, container)
		}
	}
	if len(fitting) == 0 && (controller.HasLabels(w.labels) || controller.HasLabels(w.podLabels) ||
		hasName(controller, w)) {
		return all
	}
	return fitting
}

// provisionerOf returns the name of a provisioner that an argument or a variable sets, as
// PROVISIONER_NAME or --provisioner, or "".
func provisionerOf(container corev1.Container) string {
	settings := slices.Concat(container.Command, container.Args)
	for _, env := range container.Env {
		settings = append(settings, env.Name+"="+env.Value)
	}
	for _, setting := range settings {
		key, value, _ := strings.Cut(strings.TrimLeft(setting, "-"), "=")
		key = strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(key))
		if slices.Contains([]string{"provisioner", "provisionername"}, key) && value != "" && !strings.Contains(value, "$") {
			return value
		}
	}
	return ""
}

// hasName reports whether the workload has the name of the controller, in a namespace where
// the controller is usually installed.
func hasName(controller families.Controller, w workload) bool {
	return w.pod == nil && w.name == controller.Name && slices.Contains(controller.Namespaces, w.namespace)
}

// restartableInits returns the init containers that run beside the others: sidecars.
func restartableInits(spec corev1.PodSpec) []corev1.Container {
	var sidecars []corev1.Container
	for _, container := range spec.InitContainers {
		if container.RestartPolicy != nil && *container.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			sidecars = append(sidecars, container)
		}
	}
	return sidecars
}

// startsController reports whether the command, its first argument ("hyperkube NAME") or the
// first argument of the image's own command is that of the controller.
func startsController(controller families.Controller, container corev1.Container) bool {
	words := slices.Concat(firsts(container.Command, 2), firsts(container.Args, 1))
	return slices.ContainsFunc(words, controller.HasCommand)
}

func firsts(words []string, count int) []string { return words[:min(count, len(words))] }
