package runner

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/internal/terminal"
	"github.com/exeunt-io/exeunt/pkg/reclaim/external"
	"github.com/exeunt-io/exeunt/pkg/rollback"
)

// knownNames are names that values of flags can match.
type knownNames struct {
	volumesRead, claimsRead bool
	// drivers are those of volumes and claims.
	drivers map[string]bool
	// volumes are the PersistentVolumes that flags name, and those with something of Exeunt.
	volumes map[string]bool
}

func (k *knownNames) addDriver(name string) {
	if k.drivers == nil {
		k.drivers = map[string]bool{}
	}
	if name != "" {
		k.drivers[name] = true
	}
}

// addVolume adds the driver of the volume, and the name of the volume if it is among wanted.
func (k *knownNames) addVolume(volume *corev1.PersistentVolume, wanted []string) {
	k.addDriver(external.DriverOf(volume))
	if !hasOwn(volume) && !slices.Contains(wanted, volume.Name) {
		return
	}
	if k.volumes == nil {
		k.volumes = map[string]bool{}
	}
	k.volumes[volume.Name] = true
}

// unmatched are sentences about values of flags that match nothing.
type unmatched struct {
	sentences []string
	// wrong: a value is near to a name that is there, so that something may be left.
	wrong bool
}

// matchNames looks for what the flags name. A name is known to match nothing only if all lists
// were read.
func (s *observation) matchNames(ctx context.Context) unmatched {
	var u unmatched
	if s.known.volumesRead && s.known.claimsRead && s.programs.leasesSeen {
		s.matchDrivers(ctx, &u)
	}
	for _, name := range s.options.AbandonDisk {
		if s.known.volumesRead && !s.known.volumes[name] {
			u.add("--abandon-disk", name, "there is no such PersistentVolume", slices.Sorted(maps.Keys(s.known.volumes)), always)
		}
	}
	return u
}

// matchDrivers looks for the drivers that the flags name. A driver of --stopped may be gone since an
// earlier run. The flag only ends a wait, so a wrong value leaves the wait, which the plan shows.
func (s *observation) matchDrivers(ctx context.Context, u *unmatched) {
	const reason = "no volume, claim, Lease or journal names this driver"
	drivers := slices.Concat(slices.Sorted(maps.Keys(s.known.drivers)), s.programs.drivers())
	for _, name := range s.options.Stopped {
		if name != PVController && !s.isDriver(name) {
			u.add("--stopped", name, reason, slices.Concat(drivers, []string{PVController}), never)
		}
	}
	isUnserved := func(driver string) bool { return s.removerOf(ctx, driver) != rollback.RemoverPresent }
	for _, name := range s.options.Unserved {
		if !s.isDriver(name) {
			u.add("--unserved", name, reason, drivers, isUnserved)
		}
	}
}

func always(string) bool { return true }

func never(string) bool { return false }

// add adds a sentence, with the nearest of the candidates. If the nearest one is pending, a value that should have
// been that one has left something undone. Otherwise an earlier run may have done it all.
func (u *unmatched) add(flag, name, reason string, candidates []string, isPending func(near string) bool) {
	sentence := fmt.Sprintf("%s %s: %s", flag, name, reason)
	if near := terminal.Closest(name, candidates); near != "" {
		sentence += "; did you mean " + near + "?"
		u.wrong = u.wrong || isPending(near)
	}
	u.sentences = append(u.sentences, sentence)
}

// isDriver reports whether a volume, claim, journal or leader Lease names the driver.
func (s *observation) isDriver(name string) bool {
	if s.known.drivers[name] {
		return true
	}
	if slices.ContainsFunc(s.programs.journals, func(lease journalLease) bool { return lease.owner.Driver == name }) {
		return true
	}
	for key := range s.programs.leases {
		if isLeaderOf(key[1], name) {
			return true
		}
	}
	return false
}
