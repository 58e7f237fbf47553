package status

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/exeunt-io/exeunt/internal/terminal"
	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/blocker/volume"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/provisioner/identity"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/families"
	"github.com/exeunt-io/exeunt/pkg/why/holder"
)

// The names of provisioners in a report.
const (
	ourProvisioner       = "provisioner"
	upstreamsProvisioner = "csi-provisioner"
	otherProvisioner     = "other"
)

// addDrivers adds the drivers with their provisioners and volumes.
func (s *survey) addDrivers(ctx context.Context) {
	drivers := s.countVolumes()
	registered, _ := cluster.List(ctx, s.Reader, cluster.CSIDrivers, cluster.Selection{})
	for _, driver := range registered {
		add(drivers, driver.Name)
	}
	for owner := range s.journals {
		add(drivers, owner.Driver)
	}
	s.report.Drivers = []Driver{}
	for _, name := range slices.Sorted(maps.Keys(drivers)) {
		driver := drivers[name]
		driver.Provisioner, driver.work = s.provisionerOf(ctx, name, driver.external)
		s.report.Drivers = append(s.report.Drivers, *driver)
		s.judgeDriver(driver)
	}
}

// add returns the driver of the name, which is added if it is new.
func add(drivers map[string]*Driver, name string) *Driver {
	if drivers[name] == nil {
		drivers[name] = &Driver{Name: name, Examples: []string{}}
	}
	return drivers[name]
}

// countVolumes counts the volumes of each driver.
func (s *survey) countVolumes() map[string]*Driver {
	drivers := map[string]*Driver{}
	for _, facts := range s.sortedVolumes() {
		if facts.driver == "" || isInTree(facts.driver) || facts.reclaimer == driverReclaimsLater {
			continue
		}
		driver := add(drivers, facts.driver)
		protection := protectionOf(facts.state)
		switch protection {
		case isProtected:
			driver.Protected++
		case isUnprotected:
			driver.Unprotected++
		case deletedTooEarly:
			driver.TooLate++
		case protectionUnneeded:
			continue
		}
		driver.Dynamic++
		driver.reclaims++
		driver.external = driver.external || facts.reclaimer == otherReclaims
		driver.addExample(protection, facts.name)
	}
	for _, driver := range drivers {
		driver.Examples = slices.Concat([]string{}, driver.unprotected, driver.tooLate)
	}
	return drivers
}

// addExample remembers the first volumes that are not protected, by what is wrong with them.
func (d *Driver) addExample(protection volumeProtection, volume string) {
	switch {
	case protection == isUnprotected && len(d.unprotected) < examples:
		d.unprotected = append(d.unprotected, volume)
	case protection == deletedTooEarly && len(d.tooLate) < examples:
		d.tooLate = append(d.tooLate, volume)
	}
}

// judgeDriver adds what is not as it should be.
func (s *survey) judgeDriver(d *Driver) {
	if d.Unprotected > 0 {
		s.report.find("%s: %s without the finalizer of the provisioner, such as %s: each leaves its disk in storage if it is deleted before its claim", d.Name, terminal.Count(d.Unprotected, "volume"), strings.Join(d.unprotected, ", "))
	}
	if d.TooLate > 0 {
		s.report.find("%s: %s deleted before the finalizer was added, such as %s: each leaves its disk in storage", d.Name,
			terminal.Count(d.TooLate, "volume"), strings.Join(d.tooLate, ", "))
	}
	if d.Provisioner.Gate == volume.FeatureOff.String() && d.Unprotected == 0 {
		s.report.find("%s: the provisioner does not serve the finalizer, as its image and arguments say", d.Name)
	}
	if d.work == workUndone && d.reclaims > 0 {
		s.report.find("%s: its provisioner does not run, or crashes: the disks of %s stay in storage until it works", d.Name,
			terminal.Count(d.reclaims, "volume"))
	}
	if d.work == workIdle {
		s.report.find("%s: no provisioner leads: the pods of %s are ready, but its leader Lease has run out", d.Name,
			d.Provisioner.Where)
	}
}

// provisionerOf finds who provisions for the driver: by pods, else by the Lease, else by the
// volume that was created last.
func (s *survey) provisionerOf(ctx context.Context, driver string, external bool) (Provisioner, work) {
	family, _ := families.Find(string(finalizer.External), "PersistentVolume", "")
	finding := holder.Finding{}
	if external { // no CSI driver
		finding = s.finder.Look(ctx, families.Provisioner(driver), "")
	} else {
		finding = s.finder.LookAll(ctx, family.Controllers(), driver)
	}
	_, verdict := blocker.JudgeController(finding.State)
	return s.describe(finding, driver), workOf(workState{Verdict: verdict, Idle: finding.State.IsIdle()})
}

// describe returns the provisioner that was found for the driver.
func (s *survey) describe(finding holder.Finding, driver string) Provisioner {
	leader := s.leaderOf(driver)
	if len(finding.Containers) > 0 {
		return byPods(finding, leader)
	}
	if leader != nil && finding.State.Lease == blocker.LeaseHeld {
		return Provisioner{
			Program: programOf(leader), SeenBy: "lease", Where: fmt.Sprintf("%s/%s held by %s", leader.Namespace, leader.Name,
				holderOf(leader)),
			Gate: volume.FeatureUnknown.String(), State: finding.State.Lease.String(),
		}
	}
	return s.byVolumes(driver)
}

// byPods describes the provisioner that workloads or pods run.
func byPods(finding holder.Finding, leader *coordinationv1.Lease) Provisioner {
	var programs []volume.Program
	for _, container := range finding.Containers {
		programs = append(programs, volume.Program{Image: container.Image, Args: container.Args})
	}
	gate := volume.FeatureOfAll(programs)
	if finding.Containers[0].Guessed && gate == volume.FeatureOff { // the program may be that of another driver
		gate = volume.FeatureUnknown
	}
	found := Provisioner{
		SeenBy: "pods", Where: finding.Containers[0].Workload, Version: tagOf(programs[0].Image),
		Gate: gate.String(), State: finding.State.Workload.String(),
	}
	switch {
	case leader != nil && finding.State.Lease == blocker.LeaseHeld:
		found.Program = programOf(leader)
	case slices.ContainsFunc(programs, volume.Program.IsOurs):
		found.Program = ourProvisioner
	case slices.ContainsFunc(programs, volume.Program.IsUpstream):
		found.Program = upstreamsProvisioner
	default:
		found.Program = otherProvisioner
	}
	return found
}

// byVolumes describes the program that created the latest volume of the driver.
func (s *survey) byVolumes(driver string) Provisioner {
	var latest volumeFacts
	for _, facts := range s.sortedVolumes() {
		if facts.driver == driver && facts.state.Dynamic && facts.creator != "" && facts.created.After(latest.created) {
			latest = facts
		}
	}
	found := Provisioner{Gate: volume.FeatureUnknown.String()}
	switch latest.creator {
	case "":
		return found
	case ourProvisioner, upstreamsProvisioner:
		found.Program = latest.creator
	default:
		found.Program = otherProvisioner
	}
	found.SeenBy, found.Where = "volumes", fmt.Sprintf("%s, created by %s", latest.name, latest.creator)
	return found
}

// leaderOf returns the leader Lease for the driver that was renewed last, nil for none.
func (s *survey) leaderOf(driver string) *coordinationv1.Lease {
	var latest *coordinationv1.Lease
	for i := range s.leases {
		lease := &s.leases[i]
		if lease.Name != identity.LeaseName(driver) || lease.Spec.RenewTime == nil {
			continue
		}
		if latest == nil || lease.Spec.RenewTime.After(latest.Spec.RenewTime.Time) {
			latest = lease
		}
	}
	return latest
}

// programOf returns the program of the leader.
func programOf(lease *coordinationv1.Lease) string {
	if strings.HasSuffix(holderOf(lease), controller.IdentitySuffix) {
		return ourProvisioner
	}
	return upstreamsProvisioner
}

func holderOf(lease *coordinationv1.Lease) string { return blocker.LeaseHolder(lease) }

// tagOf returns the tag of the image, or its digest, or "".
func tagOf(image string) string {
	name := image[strings.LastIndex(image, "/")+1:]
	if name, digest, has := strings.Cut(name, "@"); has {
		if _, tag, tagged := strings.Cut(name, ":"); tagged {
			return tag
		}
		return digest
	}
	_, tag, _ := strings.Cut(name, ":")
	return tag
}
