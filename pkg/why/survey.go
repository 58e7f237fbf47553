package why

import (
	"cmp"
	"slices"
	"time"

	"github.com/exeunt-io/exeunt/pkg/blocker"
)

// Survey is what waits for its deletion in a cluster or a namespace.
type Survey struct {
	// Items are the reports by root blocker: what is stuck first, then the group that waits longest, within
	// a group the oldest first.
	Items []blocker.Report `json:"items"`
	// Younger is the number of objects that wait for less than the survey was asked for.
	Younger int `json:"younger,omitempty"`
	// OlderThan is how long objects of the survey have waited at least.
	OlderThan time.Duration `json:"-"`
	// Incomplete names what could not be listed.
	Incomplete []string `json:"incomplete,omitempty"`
}

// Group is what waits for the same root blocker.
type Group struct {
	// Root is the worst root blocker of the group's objects, nil if none is known.
	Root    *blocker.Blocker
	Verdict blocker.Verdict
	Items   []blocker.Report
}

// rootKey identifies a root blocker: by its holder, else by the finalizer that nobody is known
// to remove, else by the object that blocks.
type rootKey struct {
	reason            blocker.Reason
	holder, finalizer string
	object            blocker.Object
}

// Groups returns the items by root blocker, in the order of the items.
func (s Survey) Groups() []Group {
	var groups []Group
	index := map[rootKey]int{}
	for _, item := range s.Items {
		root := worstRoot(item)
		key := keyOf(root)
		at, known := index[key]
		if !known {
			at = len(groups)
			index[key] = at
			groups = append(groups, Group{Root: root})
		}
		if root != nil && root.Verdict > groups[at].Root.Verdict {
			groups[at].Root = root
		}
		groups[at].Items = append(groups[at].Items, item)
		groups[at].Verdict = max(groups[at].Verdict, item.Verdict)
	}
	return groups
}

// Incomplete returns what could not be read for objects of the group.
func (g Group) Incomplete() []string {
	var all []string
	seen := map[string]bool{}
	for _, item := range g.Items {
		for _, sentence := range item.Incomplete {
			if !seen[sentence] {
				seen[sentence] = true
				all = append(all, sentence)
			}
		}
	}
	return all
}

func keyOf(root *blocker.Blocker) rootKey {
	switch {
	case root == nil:
		return rootKey{reason: -1}
	case root.Holder != "":
		return rootKey{reason: root.Reason, holder: root.Holder}
	case root.Finalizer != "":
		return rootKey{reason: root.Reason, finalizer: root.Finalizer}
	default:
		return rootKey{reason: root.Reason, object: root.Object}
	}
}

// worstRoot returns the first root blocker with the worst verdict.
func worstRoot(report blocker.Report) *blocker.Blocker {
	var worst *blocker.Blocker
	for root := range blocker.Roots(report.Blockers) {
		if worst == nil || root.Verdict > worst.Verdict {
			worst = &root
		}
	}
	return worst
}

// Since returns since when the object waits, in RFC 3339, else the earliest time of its blockers, or "".
func Since(report blocker.Report) string {
	earliest := report.Since
	if earliest != "" {
		return earliest
	}
	for _, found := range report.Blockers {
		if found.Since != "" && (earliest == "" || found.Since < earliest) {
			earliest = found.Since
		}
	}
	return earliest
}

// grouped returns the items, oldest first, so that those with the same root blocker follow
// each other.
func grouped(items []waitingItem) []blocker.Report {
	slices.SortStableFunc(items, func(a, b waitingItem) int {
		return cmp.Or(a.since.Compare(b.since), cmp.Compare(a.report.Object.String(), b.report.Object.String()))
	})
	var survey Survey
	for _, item := range items {
		survey.Items = append(survey.Items, item.report)
	}
	all := []blocker.Report{}
	groups := survey.Groups()
	slices.SortStableFunc(groups, func(a, b Group) int { return cmp.Compare(b.Verdict, a.Verdict) })
	for _, group := range groups {
		all = append(all, group.Items...)
	}
	return all
}
