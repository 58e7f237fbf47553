package runner

import (
	"context"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/internal/enum"
	"github.com/exeunt-io/exeunt/pkg/blocker/volume"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/families"
)

// programKind is a program that a container runs.
type programKind int

const (
	otherKind programKind = iota
	provisionerKind
	pvControllerKind
	loopsKind
)

// String returns the name of the program.
func (k programKind) String() string {
	return enum.Name(k, "other", "provisioner", "pv-controller", "kube-controller-manager")
}

// recognized are the programs as images and commands show them.
var recognized = map[programKind]families.Controller{
	provisionerKind:  {Images: []string{"exeunt/provisioner"}, Commands: []string{"provisioner"}},
	pvControllerKind: {Images: []string{"pv-controller"}, Commands: []string{"pv-controller"}},
	loopsKind:        {Images: []string{"kube-controller-manager"}, Commands: []string{"kube-controller-manager"}},
}

// kindOf returns the program of the container. The image of the provisioner also has the
// command exeunt.
func kindOf(container *corev1.Container) programKind {
	words := slices.Concat(container.Command[:min(2, len(container.Command))],
		container.Args[:min(1, len(container.Args))])
	isTool := slices.ContainsFunc(words, func(word string) bool { return path.Base(word) == "exeunt" })
	for kind, known := range recognized {
		if slices.ContainsFunc(words, known.HasCommand) || hasImage(kind, known, container.Image) && !isTool {
			return kind
		}
	}
	return otherKind
}

// hasImage reports whether the image is that of the program. A registry may have the provisioner under that
// name alone; a mirror whose name only ends so, such as mirrored-sig-storage-csi-provisioner, has upstream's.
func hasImage(kind programKind, known families.Controller, image string) bool {
	return known.HasImage(image) || kind == provisionerKind && volume.Program{Image: image}.IsOurs()
}

// containersOf returns the containers of the pod, sidecars among its init containers included.
func containersOf(pod *corev1.Pod) []corev1.Container {
	sidecars := slices.DeleteFunc(slices.Clone(pod.Spec.InitContainers), func(c corev1.Container) bool {
		return c.RestartPolicy == nil || *c.RestartPolicy != corev1.ContainerRestartPolicyAlways
	})
	return append(sidecars, pod.Spec.Containers...)
}

// programPod is a container of a pod that runs a program of Exeunt, or will.
type programPod struct {
	namespace, name, workload, container string
	kind                                 programKind
	// election is the namespace of the Leases by the arguments, "" for that of the pod, or
	// anyNamespace.
	election string
	// init: the container is among the init containers. command: the container has a command of its own.
	init, command bool
	// args are the words of the command and its arguments.
	args []string
}

// readPods finds the pods of the programs.
func (s *observation) readPods(ctx context.Context) {
	pods := map[string]corev1.Pod{}
	s.programs.podsSeen = cluster.Each(ctx, s.reader, cluster.Pods, cluster.Selection{}, func(page []corev1.Pod) {
		for _, pod := range page {
			s.readRecycler(&pod)
			if slices.ContainsFunc(containersOf(&pod), func(c corev1.Container) bool { return kindOf(&c) != otherKind }) {
				pods[string(pod.UID)] = pod
			}
		}
	})
	for _, pod := range pods {
		s.addPod(&pod)
	}
}

// addPod adds the programs that a pod runs, unless the pod has ended.
func (s *observation) addPod(pod *corev1.Pod) {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return
	}
	for _, container := range containersOf(pod) {
		switch kind := kindOf(&container); kind {
		case loopsKind: // the control planes of other clusters run in namespaces of their own
			if pod.Namespace == cluster.ControlPlane {
				s.programs.loops = max(s.programs.loops, loopsOf(&container))
			}
		case provisionerKind, pvControllerKind:
			isInit := slices.ContainsFunc(pod.Spec.InitContainers,
				func(c corev1.Container) bool { return c.Name == container.Name })
			s.programs.pods = append(s.programs.pods, programPod{
				namespace: pod.Namespace, name: pod.Name, workload: workloadOf(pod), container: container.Name, kind: kind,
				election: electionNamespace(&container, pod.Namespace), init: isInit, command: len(container.Command) > 0,
				args: slices.Concat(container.Command, container.Args),
			})
		case otherKind:
		}
	}
}

// anyNamespace is an argument from a variable of unknown value: the Leases may be in any namespace.
const anyNamespace = "*"

// electionNamespace returns the value of --leader-election-namespace, "" without the flag. own
// is the namespace of the pod.
func electionNamespace(container *corev1.Container, own string) string {
	found := ""
	for name, value := range flagsIn(slices.Concat(container.Command, container.Args)) {
		if name == "leader-election-namespace" {
			found = value
		}
	}
	if strings.Contains(found, "$(") {
		return namespaceIn(found, container.Env, own)
	}
	return found
}

// namespaceIn returns the value of the variable that an argument consists of. Of variables with
// the same name the last counts.
func namespaceIn(argument string, env []corev1.EnvVar, own string) string {
	for _, variable := range slices.Backward(env) {
		switch from := variable.ValueFrom; {
		case argument != "$("+variable.Name+")":
			continue
		case from == nil && !strings.Contains(variable.Value, "$("):
			return variable.Value
		case from != nil && from.FieldRef != nil && from.FieldRef.FieldPath == "metadata.namespace":
			return own
		default:
			return anyNamespace
		}
	}
	return anyNamespace
}

// workloadOf returns kind/name of the workload of the pod, as kubectl takes it.
func workloadOf(pod *corev1.Pod) string {
	for _, owner := range pod.OwnerReferences {
		hash := pod.Labels["pod-template-hash"]
		switch {
		case owner.Kind == "ReplicaSet" && hash != "":
			return "deployment/" + strings.TrimSuffix(owner.Name, "-"+hash)
		case owner.Kind != "":
			return strings.ToLower(owner.Kind) + "/" + owner.Name
		}
	}
	return "pod/" + pod.Name
}

// loopSwitch tells whether kube-controller-manager runs the loops that pv-controller
// replaces. Of several replicas the greatest value counts.
type loopSwitch int

const (
	loopsUnseen loopSwitch = iota
	loopsOn
	loopsOff
)

// String returns the name of the value.
func (l loopSwitch) String() string { return enum.Name(l, "unseen", "on", "off") }

// loops are the names of the loops in the flag --controllers.
var loops = []string{"persistentvolume-binder-controller", "persistentvolume-protection-controller",
	"persistentvolumeclaim-protection-controller"}

// loopsOf reads the flag --controllers of kube-controller-manager. The loops are off if one is.
func loopsOf(container *corev1.Container) loopSwitch {
	args := slices.Concat(container.Command, container.Args)
	for name, kind := range map[finalizer.Name]string{
		finalizer.InTree: "PersistentVolume", finalizer.VolumeProtection: "PersistentVolume",
		finalizer.ClaimProtection: "PersistentVolumeClaim",
	} {
		if family, _ := families.Find(string(name), kind, ""); family.Controller.IsSwitchedOff(args) {
			return loopsOff
		}
	}
	return loopsOn
}
