package why

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/blocker"
)

// likeness is what objects have in common that wait for the same, as a rule.
type likeness struct {
	resource, driver, phase, finalizers string
}

// driverOf returns who deletes the disk of the volume, for its likeness.
func driverOf(volume *corev1.PersistentVolume) string {
	if volume.Spec.CSI != nil {
		return volume.Spec.CSI.Driver
	}
	return volume.Annotations["pv.kubernetes.io/provisioned-by"]
}

// sample returns the indexes of most candidates, oldest first. Each likeness has its share, spread over its
// ages: a thousand old objects do not hide the cause of younger ones.
func sample(found []candidate, most int) []int {
	members := map[likeness][]int{}
	for i, one := range found {
		members[one.likeness] = append(members[one.likeness], i)
	}
	groups := make([][]int, 0, len(members))
	for _, group := range members {
		groups = append(groups, group)
	}
	slices.SortFunc(groups, func(a, b []int) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a[0], b[0])) })
	var chosen []int
	for i, group := range groups {
		chosen = append(chosen, spread(group, (most-len(chosen))/(len(groups)-i))...)
	}
	slices.Sort(chosen)
	return chosen
}

// spread returns share members of the group, from its first to its last.
func spread(group []int, share int) []int {
	if share >= len(group) {
		return group
	}
	var chosen []int
	for i := range share {
		chosen = append(chosen, group[i*(len(group)-1)/max(share-1, 1)])
	}
	return chosen
}

// causes counts the root blockers of explained objects of one likeness.
type causes struct {
	explained int
	count     map[rootKey]int
	root      map[rootKey]*blocker.Blocker
}

// add adds the report of an explained object.
func (c *causes) add(report blocker.Report) {
	if c.count == nil {
		c.count, c.root = map[rootKey]int{}, map[rootKey]*blocker.Blocker{}
	}
	root := worstRoot(report)
	key := keyOf(root)
	c.explained++
	c.count[key]++
	if c.root[key] == nil {
		c.root[key] = root
	}
}

// likely returns the report of an object that was not explained: with the root blocker that most objects of its
// likeness have, and the verdict unknown.
func (c *causes) likely(rest candidate, all int) blocker.Report {
	var most *blocker.Blocker
	number := 0
	for key, count := range c.count {
		if root := c.root[key]; root != nil && (count > number || count == number && root.Holder < most.Holder) {
			most, number = root, count
		}
	}
	report := rest.unknown(fmt.Sprintf("not all were explained: of %d objects with the same kind, driver, phase and finalizers, %d were, and %d have this root blocker", all, c.explained, number))
	report.Since = blocker.Time(rest.since)
	if most == nil {
		return report
	}
	found := *most
	found.Object, found.Since, found.Verdict = report.Object, report.Since, blocker.Unknown
	found.Evidence = []blocker.Evidence{{Source: blocker.FromList, Text: report.Incomplete[0]}}
	if most.Holder == "" && most.Finalizer == "" { // the group is that of the object that blocks
		found.Object = most.Object
	}
	report.Blockers = []blocker.Blocker{found.Normalized()}
	return report
}
