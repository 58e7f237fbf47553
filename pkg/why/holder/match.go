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
		if controller.Provisioner != "" {
			if name := provisionerOf(container); name != "" {
				known = name == controller.Provisioner
			}
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

// programs tells the pods that run a controller: one of the table, or a provisioner of any name.
type programs struct {
	controllers []families.Controller
	// known are the answers for containers by image and words: most pods of a cluster run the same few.
	known map[string]bool
}

// runs reports whether the pod may be a program of a controller that [Finder.Look] is asked for.
func (p *programs) runs(pod *corev1.Pod) bool {
	if hasEnded(*pod) {
		return false
	}
	w := ofPod(pod)
	return slices.ContainsFunc(slices.Concat(w.spec.Containers, restartableInits(w.spec)), p.fits) ||
		slices.ContainsFunc(p.controllers, func(c families.Controller) bool { return c.HasLabels(w.labels) })
}

func (p *programs) fits(container corev1.Container) bool {
	if provisionerOf(container) != "" {
		return true
	}
	words := commandsOf(container)
	key := container.Image + "\x00" + strings.Join(words, "\x00")
	fits, known := p.known[key]
	if !known {
		fits = slices.ContainsFunc(p.controllers, func(c families.Controller) bool {
			return c.HasImage(container.Image) || slices.ContainsFunc(words, c.HasCommand)
		})
		p.known[key] = fits
	}
	return fits
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

// startsController reports whether a command of the container is that of the controller.
func startsController(controller families.Controller, container corev1.Container) bool {
	return slices.ContainsFunc(commandsOf(container), controller.HasCommand)
}

// commandsOf returns the words of a container that may name what it runs: the command, its first argument ("hyperkube
// NAME"), and the first argument of the image's own command.
func commandsOf(container corev1.Container) []string {
	return slices.Concat(firsts(container.Command, 2), firsts(container.Args, 1))
}

func firsts(words []string, count int) []string { return words[:min(count, len(words))] }
