package intern

import (
	"encoding/binary"
	"maps"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// parts are the tables of the parts that equal objects share.
type parts struct {
	strings    table[string]
	maps       table[map[string]string]
	lists      table[[]string]
	modes      table[[]v1.PersistentVolumeAccessMode]
	resources  table[v1.ResourceList]
	classes    table[*string]
	volumeMode table[*v1.PersistentVolumeMode]
	secrets    table[*v1.SecretReference]
	affinities table[*v1.VolumeNodeAffinity]
}

// appendString appends a string and its length, so that no two lists of strings have the same key.
func appendString[T ~string](key []byte, s T) []byte {
	return append(binary.AppendUvarint(key, uint64(len(s))), s...)
}

// str replaces a string that many objects have.
func str[T ~string](p *parts, s *T) {
	if *s != "" {
		*s = T(p.strings.get([]byte(*s), func() string { return string(*s) }))
	}
}

// stringMap returns a map with the same entries.
func (p *parts) stringMap(m map[string]string) map[string]string {
	if len(m) == 0 {
		return m
	}
	var buffer [512]byte
	key := buffer[:0]
	for _, name := range slices.Sorted(maps.Keys(m)) {
		key = appendString(appendString(key, name), m[name])
	}
	return p.maps.get(key, func() map[string]string {
		shared := make(map[string]string, len(m))
		for name, value := range m {
			str(p, &name)
			str(p, &value)
			shared[name] = value
		}
		return shared
	})
}

// list returns a list with the same elements.
func list[T ~string](p *parts, t *table[[]T], elements []T) []T {
	if len(elements) == 0 {
		return elements
	}
	var buffer [256]byte
	key := buffer[:0]
	for _, element := range elements {
		key = appendString(key, element)
	}
	return t.get(key, func() []T {
		shared := make([]T, len(elements))
		for i, element := range elements {
			str(p, &element)
			shared[i] = element
		}
		return shared
	})
}

// resourceList returns a list with equal quantities.
func (p *parts) resourceList(l v1.ResourceList) v1.ResourceList {
	if len(l) == 0 {
		return l
	}
	var buffer [256]byte
	key := buffer[:0]
	for _, name := range slices.Sorted(maps.Keys(l)) {
		quantity := l[name]
		key = appendString(appendString(appendString(key, name), quantity.String()), quantity.Format)
	}
	return p.resources.get(key, func() v1.ResourceList { return maps.Clone(l) })
}

// pointer returns a pointer to an equal string.
func pointer[T ~string](t *table[*T], s *T) *T {
	if s == nil {
		return nil
	}
	return t.get([]byte(*s), func() *T { return s })
}

func (p *parts) secret(s *v1.SecretReference) *v1.SecretReference {
	if s == nil {
		return nil
	}
	var buffer [256]byte
	return p.secrets.get(appendString(appendString(buffer[:0], s.Namespace), s.Name),
		func() *v1.SecretReference { return s })
}

func (p *parts) affinity(a *v1.VolumeNodeAffinity) *v1.VolumeNodeAffinity {
	if a == nil {
		return nil
	}
	key, err := a.Marshal()
	if err != nil { // then it is stored for this object alone
		return a
	}
	return p.affinities.get(key, func() *v1.VolumeNodeAffinity { return a })
}

// owners replaces the kinds of the owners. The owners of most objects differ.
func (p *parts) owners(references []metav1.OwnerReference) {
	for i := range references {
		str(p, &references[i].APIVersion)
		str(p, &references[i].Kind)
		references[i].Controller, references[i].BlockOwnerDeletion = flag(references[i].Controller),
			flag(references[i].BlockOwnerDeletion)
	}
}

var yes, no = true, false

func flag(b *bool) *bool {
	switch {
	case b == nil:
		return nil
	case *b:
		return &yes
	}
	return &no
}

// Bounds of a table. Values with a longer key are unlikely to have an equal.
const (
	maxEntries = 4096
	maxKey     = 1024
)

// table returns the same value for equal keys. It holds at most the last 2*maxEntries keys
// that were looked up.
type table[T any] struct {
	mu               sync.Mutex
	recent, previous map[string]T
}

// get returns the value of the key. It calls value for a key that is not in the table.
func (t *table[T]) get(key []byte, value func() T) T {
	if len(key) > maxKey {
		return value()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if known, found := t.recent[string(key)]; found {
		return known
	}
	known, found := t.previous[string(key)]
	if !found {
		known = value()
	}
	t.add(string(key), known)
	return known
}

// add adds a value to the recent ones. Once these are too many, they become the previous ones.
func (t *table[T]) add(key string, value T) {
	if t.recent == nil || len(t.recent) >= maxEntries {
		t.recent, t.previous = map[string]T{}, t.recent
	}
	t.recent[key] = value
}
