package csimock

import (
	"cmp"
	"slices"
)

// catalog holds records by ID and by name.
type catalog[T interface{ record() *Record }] struct {
	byID   map[string]T
	byName map[string]T
}

// newCatalog returns an empty catalog.
func newCatalog[T interface{ record() *Record }]() catalog[T] {
	return catalog[T]{byID: map[string]T{}, byName: map[string]T{}}
}

// add adds a record. A record without a name is found by ID only.
func (c catalog[T]) add(item T) {
	c.byID[item.record().ID] = item
	if name := item.record().Name; name != "" {
		c.byName[name] = item
	}
}

// remove removes a record.
func (c catalog[T]) remove(item T) {
	delete(c.byID, item.record().ID)
	delete(c.byName, item.record().Name)
}

// sorted returns all records, oldest first.
func (c catalog[T]) sorted() []T {
	items := make([]T, 0, len(c.byID))
	for _, item := range c.byID {
		items = append(items, item)
	}
	slices.SortFunc(items, func(a, b T) int { return cmp.Compare(a.record().Sequence, b.record().Sequence) })
	return items
}
