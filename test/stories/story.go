package stories

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/exeunt-io/exeunt/test/demo"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// Story is something that an administrator or an accident does to volumes.
type Story struct {
	// Name of the story in the flag --story.
	Name string
	// What happens, in a sentence.
	What string
	// Faults of the driver, as YAML; "" for none.
	Faults string
	// admission: our programs have the admission policy of deploy/admission, upstream's have none.
	admission bool
	// own runs the story with all pairs in clusters of its own, without volumes of the mock driver; nil for the cluster of
	// the other stories. The story is run only if it is named. programs returns an error if one is missing.
	own      func(*runner, context.Context, Story) ([]Result, error)
	programs func(sandbox.Binaries) error
	// run carries out the story of a pair. It returns what is measured beside the volumes that are left.
	run func(context.Context, *session) ([]Measure, error)
}

// Measure is a measured value.
type Measure struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	// Promised is the value that our programs promise, "" for none.
	Promised string `json:"promised,omitempty"`
}

// All are the stories in the order in which they are run.
func All() []Story { return append(sharedStories(), ownStories()...) }

// sharedStories are about volumes, in one cluster.
func sharedStories() []Story {
	return []Story{
		{
			Name:   "killed",
			What:   "the provisioner is killed while the driver creates a volume, and the claim is deleted meanwhile",
			Faults: "[{method: CreateVolume, times: 1, hang: true, after: true}]", // created, but never answered
			run:    runKilled,
		},
		{
			Name:      "policy-race",
			What:      "the reclaim policy of 20 volumes becomes Delete, and each volume is deleted at once, then its claim",
			admission: true, // without it a controller adds the finalizer, sometimes too late: the volume leaks
			run:       runPolicyRace,
		},
		{
			Name: "pv-first",
			What: "many volumes are deleted before their claims",
			run:  runVolumesFirst,
		},
		{
			Name: "pvc-first",
			What: "many claims are deleted before their volumes",
			run:  runClaimsFirst,
		},
		{
			Name:   "namespace",
			What:   "a namespace is deleted while one of its volumes is being created",
			Faults: "[{method: CreateVolume, latency: 2s, after: true}]", // created, and answered late
			run:    runNamespace,
		},
	}
}

// ownStories have clusters of their own.
func ownStories() []Story {
	return []Story{
		{
			Name:     "grace",
			What:     "20 guests need 3 s to shut down, and are deleted with --grace-period=10; the default of their controller is 1 s",
			own:      (*runner).runGraces,
			programs: checkGrace,
			run:      runGrace,
		},
		{
			Name: "node",
			What: fmt.Sprintf("three nodes end within %s: three pods under one budget, one that ignores SIGTERM, one with "+
				"do-not-disrupt, and a disk on a node whose kubelet is dead", nodePeriod),
			own:      (*runner).runNodes,
			programs: demo.CheckCloud,
		},
		{
			Name: "teardown",
			What: "a cluster goes away: its machines are deleted, after its Services, after a script that deletes all claims " +
				"and waits until no PersistentVolume is left, or after exeunt teardown",
			own:      (*runner).runTeardowns,
			programs: checkTeardown,
		},
	}
}

// Select returns the named stories in the order of the table. Without names it returns all but those with clusters of
// their own.
func Select(names []string) ([]Story, error) {
	all := All()
	if len(names) == 0 {
		return slices.DeleteFunc(all, func(story Story) bool { return story.own != nil }), nil
	}
	var known []string
	for _, story := range all {
		known = append(known, story.Name)
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("there is no story %q, there are: %s", name, strings.Join(known, ", "))
		}
	}
	return slices.DeleteFunc(all, func(story Story) bool { return !slices.Contains(names, story.Name) }), nil
}
