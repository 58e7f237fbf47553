package holder

import (
	"slices"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/exeunt-io/exeunt/internal/enum"
	"github.com/exeunt-io/exeunt/pkg/why/families"
)

// service says whether a workload with a sidecar serves a CSI driver.
type service int

const (
	// serviceUnknown: nothing tells which driver the workload serves.
	serviceUnknown service = iota
	// servesOther: the workload serves another driver.
	servesOther
	// servesDriver: the workload serves the driver.
	servesDriver
)

// String returns the name of the value.
func (s service) String() string { return enum.Name(s, "unknown", "servesOther", "servesDriver") }

// serviceOf says whether the workload serves the driver: by the name in its labels,
// arguments, environment and directories, else by the holder of a leader Lease.
// others are the names of other drivers.
func serviceOf(w workload, controller families.Controller, driver string, leases []coordinationv1.Lease,
	others []string) service {
	texts := textsOf(w)
	if slices.ContainsFunc(texts, func(text string) bool { return families.NamesDriver(text, driver) }) {
		return servesDriver
	}
	other := false
	for _, lease := range leases {
		if lease.Namespace != w.namespace || !isHeldBy(lease, w) {
			continue
		}
		if families.IsSidecarLease(lease.Name, driver) {
			return servesDriver
		}
		other = other || isOtherLease(controller, lease.Name, others)
	}
	if other || slices.ContainsFunc(texts, func(text string) bool { return namesOther(text, others) }) {
		return servesOther
	}
	return serviceUnknown
}

// isOtherLease reports whether the Lease is that of a sidecar of another driver: of a
// registered one, or of any by the text before the driver's name.
func isOtherLease(controller families.Controller, name string, others []string) bool {
	if slices.ContainsFunc(others, func(other string) bool { return families.IsSidecarLease(name, other) }) {
		return true
	}
	return slices.ContainsFunc(controller.Leases, func(pattern string) bool {
		before, _, has := strings.Cut(pattern, "{driver}")
		return has && before != "" && strings.HasPrefix(name, before)
	})
}

// namesOther reports whether the text names one of the other drivers, or is a flag or variable
// for the name of a driver.
func namesOther(text string, others []string) bool {
	return namesAnyDriver(text) || slices.ContainsFunc(others, func(other string) bool { return families.NamesDriver(text, other) })
}

// isHeldBy reports whether the holder of the Lease is a pod of the workload, by its name. The
// holder of a static pod on the host network is its node.
func isHeldBy(lease coordinationv1.Lease, w workload) bool {
	holder := leaseHolder(lease)
	if w.pod == nil {
		return strings.HasPrefix(holder, w.name+"-")
	}
	host, _, _ := strings.Cut(holder, "_")
	return host != "" && (host == w.name || host == w.spec.NodeName || strings.HasSuffix(w.name, "-"+host))
}

// textsOf returns the texts of the workload in which drivers are named.
func textsOf(w workload) []string {
	texts := []string{w.name}
	for _, set := range []map[string]string{w.labels, w.podLabels, w.annotations} {
		for key, value := range set {
			texts = append(texts, key+"="+value)
		}
	}
	for _, container := range slices.Concat(w.spec.InitContainers, w.spec.Containers) {
		texts = append(texts, container.Command...)
		texts = append(texts, container.Args...)
		for _, env := range container.Env {
			texts = append(texts, env.Name+"="+env.Value)
		}
	}
	for _, volume := range w.spec.Volumes {
		if volume.HostPath != nil {
			texts = append(texts, volume.HostPath.Path)
		}
	}
	return texts
}

// namesAnyDriver reports whether the text is a flag or variable with the name of a driver.
func namesAnyDriver(text string) bool {
	key, value, _ := strings.Cut(strings.TrimLeft(text, "-"), "=")
	key = strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(key))
	return value != "" && !strings.Contains(value, "$") &&
		slices.Contains([]string{"drivername", "csidrivername", "provisionername"}, key)
}
