package plan

import (
	"context"
	"fmt"
	"strings"

	"github.com/exeunt-io/exeunt/internal/terminal"
	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/pkg/teardown/inventory"
	"github.com/exeunt-io/exeunt/pkg/why/families"
	"github.com/exeunt-io/exeunt/pkg/why/holder"
)

// addWorkers adds the programs that delete, and refuses where one is proven gone (#65).
func (s *survey) addWorkers(ctx context.Context) {
	finder := holder.Finder{Reader: s.Reader, Commands: s.Commands}
	for _, duty := range s.duties {
		controllers := controllersOf(duty.Duty)
		if len(controllers) == 0 {
			continue
		}
		driver := ""
		if duty.CSI {
			driver = duty.Driver
		}
		finding := finder.LookAll(ctx, controllers, driver)
		reason, _ := blocker.JudgeController(finding.State)
		// A program that runs on nodes does nothing without a node.
		idle := s.ready == 0 && len(finding.Containers) > 0 && finding.State.Lease != blocker.LeaseHeld
		worker := teardown.Worker{For: nameOf(duty.Duty), Objects: duty.Objects, Where: finding.Holder, State: stateOf(reason, idle)}
		s.plan.Workers = append(s.plan.Workers, worker)
		if problem, is := problemOf(worker, duty.Duty, idle); is {
			problem.Next = finding.Next
			s.problem(problem)
		}
	}
}

// controllersOf returns who may do the work, nil if nobody is known.
func controllersOf(duty inventory.Duty) []families.Controller {
	switch {
	case duty.Kind == "PersistentVolume" && !duty.CSI && strings.HasPrefix(duty.Driver, "kubernetes.io/"):
		return nil // a loop of the control plane
	case duty.Kind == "PersistentVolume" && !duty.CSI:
		return []families.Controller{families.Provisioner(duty.Driver)}
	}
	family, known := families.Find(duty.Finalizer, duty.Kind, duty.Group)
	if !known {
		return nil
	}
	return family.Controllers()
}

func nameOf(duty inventory.Duty) string {
	if duty.Driver != "" {
		return duty.Driver + ", " + nouns[duty.Kind]
	}
	return nouns[duty.Kind] + " with " + duty.Finalizer
}

// nouns are what the objects of a duty stand for.
var nouns = map[string]string{"PersistentVolume": "volumes", "VolumeSnapshotContent": "snapshots",
	"Service": "load balancers", "Ingress": "Ingresses", "Gateway": "Gateways"}

func stateOf(reason blocker.Reason, idle bool) string {
	switch {
	case reason == blocker.ControllerGone:
		return "gone"
	case idle:
		return "no node"
	case reason == blocker.ControllerFails:
		return "fails"
	case reason == blocker.ControllerActs:
		return "acts"
	}
	return "unseen"
}

// problemOf returns what a person has to know of a worker.
func problemOf(worker teardown.Worker, duty inventory.Duty, idle bool) (teardown.Problem, bool) {
	count := fmt.Sprintf("%d %s", worker.Objects, nouns[duty.Kind])
	switch {
	case worker.State == "gone":
		return teardown.Problem{Reason: "ControllerGone", Refuses: true, Text: fmt.Sprintf("%s of %s cannot be deleted: the "+
			"program that does it is gone; repair it, or preserve them", count, ofWhom(duty))}, true
	case idle:
		return teardown.Problem{Reason: "NoReadyNode", Refuses: true, Text: fmt.Sprintf("%s of %s cannot be deleted: %s runs on "+
			"nodes, and no node is ready; repair one, or preserve them", count, ofWhom(duty), worker.Where)}, true
	case worker.State == "fails":
		return teardown.Problem{Reason: "ControllerFails", Text: fmt.Sprintf("%s of %s may stay: %s does not work", count,
			ofWhom(duty), worker.Where)}, true
	}
	return teardown.Problem{}, false
}

func ofWhom(duty inventory.Duty) string {
	if duty.Driver != "" {
		return "driver " + terminal.Printable(duty.Driver)
	}
	return "finalizer " + terminal.Printable(duty.Finalizer)
}
