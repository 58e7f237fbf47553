package check

import (
	"cmp"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/protection"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// forever is later than every record.
var forever = time.Unix(1<<40, 0)

// ordered returns the versions in the order they were written, each once, with the times
// between which it was written.
func (h *History) ordered() []version {
	all := slices.Clone(h.versions)
	slices.SortStableFunc(all, func(a, b version) int {
		return cmp.Or(cmp.Compare(a.epoch, b.epoch), cmp.Compare(a.revision, b.revision), compareKeys(a.key, b.key),
			a.observed.Compare(b.observed))
	})
	all = slices.CompactFunc(all, func(a, b version) bool {
		return a.epoch == b.epoch && a.revision == b.revision && a.key == b.key && a.gone == b.gone
	})
	h.bound(all)
	return all
}

// bound sets the times between which each version was written.
func (h *History) bound(all []version) {
	before := forever
	for i := len(all) - 1; i >= 0; i-- {
		before = earlier(before, all[i].observed)
		all[i].before = before
	}
	h.index = indexed(h.requests)
	lists := slices.Clone(h.lists)
	slices.SortFunc(lists, func(a, b list) int {
		return cmp.Or(cmp.Compare(a.epoch, b.epoch), cmp.Compare(a.revision, b.revision))
	})
	after := time.Time{}
	for i := range all {
		for len(lists) > 0 && (lists[0].epoch < all[i].epoch || lists[0].epoch == all[i].epoch &&
			lists[0].revision < all[i].revision) {
			after, lists = later(after, lists[0].began), lists[1:]
		}
		all[i].after = earlier(after, all[i].before)
		if writers := h.index.writers(&all[i]); len(writers) > 0 {
			h.index.note(&all[i], writers)
			first := slices.MinFunc(writers, func(a, b Request) int { return a.Began.Compare(b.Began) })
			after = later(after, earlier(first.Began, all[i].before))
			all[i].after = after
		}
	}
}

func compareKeys(a, b objectKey) int {
	return cmp.Or(cmp.Compare(a.resource, b.resource), cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name),
		cmp.Compare(a.entry, b.entry))
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// group is what refers to each other at some time. Objects of two groups cannot break a rule
// together, so each group is replayed alone.
type group struct {
	versions []version
	calls    []Record
}

// groups splits the record.
func (h *History) groups() []*group {
	all := h.ordered()
	sets := sets{}
	for i := range all {
		sets.join(all[i].names())
	}
	for i := range h.calls {
		sets.join(h.calls[i].names())
	}
	byRoot := map[string]*group{}
	var groups []*group
	of := func(names []string) *group {
		root := sets.root(names[0])
		if byRoot[root] == nil {
			byRoot[root] = &group{}
			groups = append(groups, byRoot[root])
		}
		return byRoot[root]
	}
	for i := range all {
		g := of(all[i].names())
		g.versions = append(g.versions, all[i])
	}
	for i := range h.calls {
		g := of(h.calls[i].names())
		g.calls = append(g.calls, h.calls[i])
	}
	return groups
}

// names returns the names by which the version and others refer to its object; the first is
// its own.
func (v *version) names() []string {
	names := []string{v.key.resource + " " + v.key.namespace + "/" + v.key.name + " " + string(v.key.entry)}
	switch object := v.object.(type) {
	case *v1.PersistentVolume:
		names = append(names, "volume "+object.Name)
		names = named(names, "handle ", HandleOf(object))
		names = named(names, "claim UID ", string(refOf(object)))
	case *v1.PersistentVolumeClaim:
		names = append(names, "claim UID "+string(object.UID), "claim "+object.Namespace+"/"+object.Name)
		names = named(names, "volume ", object.Spec.VolumeName)
		if source := protection.NeededSource(object); source.Kind == storage.SourceClaim {
			names = append(names, "claim "+source.Namespace+"/"+source.Name)
		}
	case *v1.Pod:
		for _, name := range protection.ClaimNames(object) {
			names = append(names, "claim "+object.Namespace+"/"+name)
		}
	default:
		names = append(names, "claim UID "+string(v.key.entry))
		names = named(names, "handle ", v.entry.Handle)
		names = named(names, "volume ", v.entry.VolumeName())
	}
	return names
}

// named appends a name of the kind, unless it is empty.
func named(names []string, kind, name string) []string {
	if name == "" {
		return names
	}
	return append(names, kind+name)
}

// names returns the names of the disk of a call. A volume is named after the claim that it
// was requested for, with the UID at the end.
func (c *Record) names() []string {
	var names []string
	if c.Name != "" {
		names = append(names, "volume "+c.Name)
		const uid = len("00000000-0000-0000-0000-000000000000")
		if len(c.Name) > uid {
			names = append(names, "claim UID "+c.Name[len(c.Name)-uid:])
		}
	}
	if c.Handle != "" || len(names) == 0 {
		names = append(names, "handle "+c.Handle)
	}
	return names
}

// sets are disjoint sets of names: each name leads to another one of its set.
type sets map[string]string

// root returns the name that stands for the set of the name.
func (s sets) root(name string) string {
	for s[name] != "" && s[name] != name {
		if next := s[s[name]]; next != "" {
			s[name] = next // shorten the way
		}
		name = s[name]
	}
	return name
}

// join unites the sets of the names.
func (s sets) join(names []string) {
	first := s.root(names[0])
	for _, name := range names[1:] {
		if other := s.root(name); other != first {
			s[other] = first
		}
	}
}
