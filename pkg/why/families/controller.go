package families

import (
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Controller says how to recognize a controller in a cluster. Empty fields say nothing.
type Controller struct {
	// Name is the usual name of the controller, such as "external-attacher".
	Name string
	// Images are the last path elements of image names, without registry, tag and digest: one,
	// such as "csi-attacher", or two where one is ambiguous, such as "kuberay/operator".
	Images []string
	// Commands are base names of the command or first argument of a container.
	Commands []string
	// Labels are labels of its pods or workloads, all of which must match.
	Labels map[string]string
	// Provisioner is the name that its containers are set to. A container of its images that is set to
	// another name is another program.
	Provisioner string
	// Leases are names of its leader Leases; * stands for any text, {driver} for the sanitized
	// name of the CSI driver.
	Leases []string
	// Namespaces are where it is usually installed, for the text alone.
	Namespaces []string
	// Needs are names of custom resource definitions and webhook configurations that every installation has.
	Needs []string
	// EventSources are the components that its events name; * stands for any text, {driver} for
	// the name of the CSI driver.
	EventSources []string
	// ErrorReasons are reasons of its events that report a failed cleanup.
	ErrorReasons []string
	// SuccessReasons are reasons of its events that report a later success.
	SuccessReasons []string
	// ElectsByFlag: it has no leader election unless a flag switches it on.
	ElectsByFlag bool
	// ControlPlane: it is part of the control plane, which managed clusters run outside.
	ControlPlane bool
	// RunsIn says where it may run outside of the cluster, such as "the cluster of Rancher"; "" for the
	// cluster itself, or its control plane.
	RunsIn string
	// InAPIServer: it runs in the API server, and lives if the API server answers.
	InAPIServer bool
	// Loops are the names of its loop in the flag --controllers of the program, old ones included.
	Loops []string
	// OffArgs are arguments of the program that switch its loop off, or have it write nothing.
	OffArgs []string
}

// IsRecognizable reports whether a workload of the controller can be told from others. If
// not, no list of workloads says that the controller is absent; a missing one of Needs does.
func (c Controller) IsRecognizable() bool {
	return len(c.Images)+len(c.Commands)+len(c.Labels) > 0 || c.Provisioner != ""
}

// HasImage reports whether the image of a container is an image of the controller.
func (c Controller) HasImage(image string) bool {
	image, _, _ = strings.Cut(image, "@")
	if colon := strings.LastIndex(image, ":"); colon > strings.LastIndex(image, "/") {
		image = image[:colon]
	}
	for _, own := range c.Images {
		if image == own || strings.HasSuffix(image, "/"+own) || isMirror(image, own) {
			return true
		}
	}
	return false
}

// isMirror reports whether the image is a copy in a flat registry, such as
// rancher/mirrored-sig-storage-csi-provisioner.
func isMirror(image, own string) bool {
	name := image[strings.LastIndex(image, "/")+1:]
	return strings.HasPrefix(name, "mirrored-") && strings.HasSuffix(name, "-"+strings.ReplaceAll(own, "/", "-"))
}

// HasCommand reports whether the command or first argument of a container starts the controller.
func (c Controller) HasCommand(command string) bool {
	for _, own := range c.Commands {
		if command != "" && path.Base(command) == own {
			return true
		}
	}
	return false
}

// HasLabels reports whether the labels of a pod or workload are those of the controller.
func (c Controller) HasLabels(labels map[string]string) bool {
	for key, value := range c.Labels {
		if labels[key] != value {
			return false
		}
	}
	return len(c.Labels) > 0
}

// HasLease reports whether a Lease of the name belongs to the controller. Driver is the name
// of the CSI driver that the controller serves, or "".
func (c Controller) HasLease(name, driver string) bool {
	return matchesAny(c.Leases, name, strings.ToLower(SanitizedDriver(driver))) // Leases have no capital letters
}

// MaySend reports whether the component of an event may be the controller: it is one of its
// components, or these are not known.
func (c Controller) MaySend(component, driver string) bool {
	return len(c.EventSources) == 0 || c.HasEventSource(component, driver)
}

// HasEventSource reports whether the component of an event is the controller. Driver is the
// name of the CSI driver that the controller serves, or "".
func (c Controller) HasEventSource(component, driver string) bool {
	return matchesAny(c.EventSources, component, driver)
}

// matchesAny reports whether the text fits a pattern. Without a driver, patterns of drivers
// fit nothing.
func matchesAny(patterns []string, text, driver string) bool {
	for _, pattern := range patterns {
		if driver == "" && strings.Contains(pattern, "{driver}") {
			continue
		}
		if Match(strings.ReplaceAll(pattern, "{driver}", driver), text) {
			return true
		}
	}
	return false
}

// IsSwitchedOff reports whether the arguments of the program switch the controller off.
func (c Controller) IsSwitchedOff(args []string) bool { return c.OffFlag(args) != "" }

// OffFlag returns the argument that switches the controller off, or "". The flag --controllers
// is read as kube-controller-manager reads it: the first item that names the loop counts, then *.
func (c Controller) OffFlag(args []string) string {
	for _, arg := range args {
		if slices.Contains(c.OffArgs, arg) {
			return arg
		}
	}
	if items, given := controllersFlag(args); given && len(c.Loops) > 0 && !c.isListed(items) {
		return "--controllers"
	}
	return ""
}

// isListed reports whether the items of the flag --controllers switch a loop of the controller on.
func (c Controller) isListed(items []string) bool {
	for _, item := range items {
		name, off := strings.CutPrefix(item, "-")
		if slices.Contains(c.Loops, name) {
			return !off
		}
	}
	return slices.Contains(items, "*")
}

// controllersFlag returns the items of the flag --controllers, and whether it is given.
func controllersFlag(args []string) (items []string, given bool) {
	for i, arg := range args {
		value, found := strings.CutPrefix(arg, "--controllers=")
		if arg == "--controllers" && i+1 < len(args) {
			value, found = args[i+1], true
		}
		if found {
			items, given = append(items, strings.Split(value, ",")...), true
		}
	}
	return items, given
}

// SanitizedDriver returns the name of the CSI driver as finalizers and Leases of the sidecars
// have it. A name that is sanitized already stays.
func SanitizedDriver(driver string) string {
	name := strings.Map(func(r rune) rune {
		if r < 128 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9') {
			return r
		}
		return '-'
	}, driver)
	if strings.HasSuffix(name, "-") {
		name += "X"
	}
	return name
}

// electionFlags are the flags, without dashes, that switch leader election on or off.
var electionFlags = []string{"leader-election", "leader-elect", "enable-leader-election", "leader-election-enabled"}

// RunsWithoutElection reports whether the arguments of the program say that it works without a
// leader Lease.
func (c Controller) RunsWithoutElection(args []string) bool {
	for _, arg := range slices.Backward(args) { // the last one counts
		flag, value, hasValue := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if !strings.HasPrefix(arg, "-") || !slices.Contains(electionFlags, flag) {
			continue
		}
		on, err := strconv.ParseBool(value)
		return hasValue && err == nil && !on
	}
	return c.ElectsByFlag && !slices.ContainsFunc(args, func(arg string) bool { return strings.Contains(arg, "$(") })
}

// provisionerImages are the images of widely used provisioners that are no CSI drivers, by the name
// of the provisioner: these programs have the name built in. The others are told by their settings.
var provisionerImages = map[string]Controller{
	"rancher.io/local-path": { // https://github.com/rancher/local-path-provisioner/blob/master/main.go
		Images: []string{"local-path-provisioner"}, Commands: []string{"local-path-provisioner"},
		Namespaces: []string{"local-path-storage", "kube-system"},
	},
	"openebs.io/local": { // https://github.com/openebs/dynamic-localpv-provisioner/blob/develop/cmd/provisioner-localpv/app/provisioner.go
		Images: []string{"provisioner-localpv"}, Namespaces: []string{"openebs"},
	},
	"microk8s.io/hostpath": { // https://github.com/canonical/hostpath-provisioner/blob/master/hostpath-provisioner.go
		Images: []string{"hostpath-provisioner"}, Namespaces: []string{"kube-system"},
	},
	"k8s.io/minikube-hostpath": { // https://github.com/kubernetes/minikube/blob/master/pkg/storage/storage_provisioner.go
		Images: []string{"storage-provisioner"}, Namespaces: []string{"kube-system"},
	},
}

// Provisioner returns how to recognize the provisioner of the name, as the annotation
// pv.kubernetes.io/provisioned-by has it, that is no CSI driver. sig-storage-lib-external-provisioner
// names its Lease and the component of its events for the provisioner.
func Provisioner(name string) Controller {
	c := provisionerImages[name]
	c.Name = "the provisioner " + name
	c.Provisioner = name
	c.Leases = []string{strings.ReplaceAll(name, "/", "-"), SanitizedDriver(name)}
	c.EventSources, c.ErrorReasons = []string{name + "_*"}, []string{"VolumeFailedDelete"}
	return c
}

// Recognizable returns the controllers whose workloads can be told from others: those of the table, and the provisioners
// that have their name built in.
func Recognizable() []Controller {
	found := slices.Collect(maps.Values(provisionerImages))
	for _, family := range all {
		found = append(found, family.Controllers()...)
	}
	return slices.DeleteFunc(found, func(c Controller) bool { return !c.IsRecognizable() })
}

// IsProvisioner reports whether the name is that of a program beside Kubernetes, not of a plugin in it.
func IsProvisioner(name string) bool {
	return name != "" && !strings.HasPrefix(name, "kubernetes.io/")
}
