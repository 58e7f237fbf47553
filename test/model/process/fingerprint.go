package process

import (
	"fmt"
	"hash/maphash"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"
	"unsafe"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/exeunt-io/exeunt/pkg/controller"
)

// ages are the limits between which the age of a remembered time makes no difference: the
// timeouts of the provisioner.
var ages = []time.Duration{time.Minute, 70 * time.Second, 10 * time.Minute, time.Hour}

// forgotten are the fields that say nothing about what a program does next: counters that
// are compared only within one pass, and messages that were sent.
var forgotten = map[string]bool{
	"provisioning.objectFacts.events": true,
	"claim.Controller.started":        true,
	"claim.Controller.served":         true,
}

// skipped are the packages whose values are no memory: clients, caches, locks, metrics.
var skipped = []string{
	"sync", "context", "k8s.io/client-go", "github.com/prometheus", "k8s.io/klog", "google.golang.org", "net/", "log",
	"sigs.k8s.io/sig-storage-lib-external-provisioner", "k8s.io/apimachinery/pkg/runtime", "k8s.io/utils",
}

// skippedTypes are the types of ours that are no memory.
var skippedTypes = []reflect.Type{
	reflect.TypeFor[controller.Loop](), reflect.TypeFor[controller.Reporter](), reflect.TypeFor[controller.KeyLocks](),
	reflect.TypeFor[controller.Stepped](),
	reflect.TypeFor[controller.Repeats](), // decides when a write is sent, not whether
}

// printer writes all that values hold, so that two equal texts mean equal memory.
type printer struct {
	out  strings.Builder
	now  time.Time
	seen map[unsafe.Pointer]bool
	// version returns the cached version of the object with the UID.
	version func(uid string) string
}

// fingerprint returns a text of the memory, the caches and the queues of the actor.
func (a *actor) fingerprint() string {
	p := &printer{now: time.Now(), seen: map[unsafe.Pointer]bool{}, version: a.version}
	for _, root := range a.program.Memory {
		p.print(reflect.ValueOf(root))
		p.out.WriteByte('\n')
	}
	for _, name := range sortedNames(a.informers) {
		for _, key := range sortedKeys(a.informers[name].Indexer) {
			object, _, _ := a.informers[name].GetByKey(key) // a store in memory does not fail
			p.print(reflect.ValueOf(object))
		}
	}
	for _, loop := range a.program.Loops {
		due, later := loop.Keys()
		fmt.Fprint(&p.out, loop.Name(), due, later)
	}
	fmt.Fprint(&p.out, sortedNames(a.listed), a.ended)
	return p.out.String()
}

var (
	timeType     = reflect.TypeFor[time.Time]()
	quantityType = reflect.TypeFor[resource.Quantity]()
	versionsType = reflect.TypeFor[controller.Versions]()
)

func (p *printer) print(v reflect.Value) {
	if !v.IsValid() {
		p.out.WriteString("nil ")
		return
	}
	t := v.Type()
	if isSkipped(t) {
		return
	}
	v = readable(v)
	switch t {
	case timeType:
		p.printTime(*(*time.Time)(v.Addr().UnsafePointer()))
		return
	case quantityType:
		quantity := (*resource.Quantity)(v.Addr().UnsafePointer()).DeepCopy()
		p.out.WriteString(quantity.String())
		return
	case versionsType:
		p.printVersions(readable(v.FieldByName("written")))
		return
	}
	p.printKind(v)
}

func (p *printer) printKind(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		p.printPointer(v)
	case reflect.Interface:
		p.print(v.Elem())
	case reflect.Struct:
		p.printStruct(v)
	case reflect.Map:
		p.printMap(v)
	case reflect.Slice, reflect.Array:
		p.out.WriteByte('[')
		for i := range v.Len() {
			p.print(v.Index(i))
			p.out.WriteByte(',')
		}
		p.out.WriteByte(']')
	case reflect.Func, reflect.Chan, reflect.UnsafePointer:
	case reflect.String:
		p.out.WriteString(v.String())
	case reflect.Bool:
		fmt.Fprint(&p.out, v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		fmt.Fprint(&p.out, v.Int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		fmt.Fprint(&p.out, v.Uint())
	default:
		fmt.Fprintf(&p.out, "%v", v)
	}
}

// printPointer prints what a pointer points to, once.
func (p *printer) printPointer(v reflect.Value) {
	if v.IsNil() {
		p.out.WriteString("nil ")
		return
	}
	if isSkipped(v.Type().Elem()) || p.seen[v.UnsafePointer()] {
		return
	}
	p.seen[v.UnsafePointer()] = true
	p.print(v.Elem())
	delete(p.seen, v.UnsafePointer())
}

func (p *printer) printStruct(v reflect.Value) {
	t := v.Type()
	p.out.WriteByte('{')
	for i := range v.NumField() {
		if forgotten[t.String()+"."+t.Field(i).Name] || v.Field(i).IsZero() {
			continue
		}
		p.out.WriteString(t.Field(i).Name)
		p.out.WriteByte(':')
		p.print(v.Field(i))
		p.out.WriteByte(' ')
	}
	p.out.WriteByte('}')
}

func (p *printer) printMap(v reflect.Value) {
	if v.CanAddr() { // the values of an unexported map can be copied only this way
		v = reflect.NewAt(v.Type(), v.Addr().UnsafePointer()).Elem()
	}
	lines := make([]string, 0, v.Len())
	for entries := v.MapRange(); entries.Next(); {
		inner := printer{now: p.now, seen: p.seen, version: p.version}
		inner.print(entries.Key())
		inner.out.WriteByte('=')
		value := reflect.New(v.Type().Elem()).Elem()
		value.Set(entries.Value())
		inner.print(value)
		lines = append(lines, inner.out.String())
	}
	slices.Sort(lines)
	fmt.Fprintf(&p.out, "map%q", lines)
}

// printTime prints only between which ages a time is.
func (p *printer) printTime(t time.Time) {
	switch age := p.now.Sub(t); {
	case t.IsZero():
		p.out.WriteString("never")
	case age < 0:
		p.out.WriteString("future")
	default:
		bucket := 0
		for bucket < len(ages) && age >= ages[bucket] {
			bucket++
		}
		fmt.Fprint(&p.out, "age", bucket)
	}
}

// printVersions prints the own writes that the caches do not show yet; the others have no
// effect any more.
func (p *printer) printVersions(written reflect.Value) {
	var lines []string
	for entries := written.MapRange(); entries.Next(); {
		uid, write := entries.Key().String(), readable(entries.Value())
		version, cached := write.FieldByName("version").String(), p.version(uid)
		if order, err := resourceversion.CompareResourceVersion(cached, version); cached == "" || err != nil || order < 0 {
			inner := printer{now: p.now}
			inner.print(write.FieldByName("confirmed"))
			lines = append(lines, uid+"@"+version+inner.out.String())
		}
	}
	slices.Sort(lines)
	fmt.Fprint(&p.out, lines)
}

// skippedByType has the answers of isSkipped so far.
var skippedByType sync.Map

func isSkipped(t reflect.Type) bool {
	if skip, known := skippedByType.Load(t); known {
		return skip == true
	}
	skip := slices.Contains(skippedTypes, t) || slices.ContainsFunc(skipped, func(prefix string) bool {
		return t.PkgPath() != "" && strings.HasPrefix(t.PkgPath(), prefix)
	})
	skippedByType.Store(t, skip)
	return skip
}

// readable returns the value with an address, and readable if it is of an unexported field:
// so are then its own fields.
func readable(v reflect.Value) reflect.Value {
	if v.CanAddr() {
		return reflect.NewAt(v.Type(), unsafe.Pointer(v.UnsafeAddr())).Elem()
	}
	addressable := reflect.New(v.Type()).Elem()
	addressable.Set(v)
	return addressable
}

func sortedNames[T any](m map[string]T) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

var seed = maphash.MakeSeed()

// digest shortens a fingerprint.
func digest(text string) [2]uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	_, _ = h.WriteString(text) // never fails
	first := h.Sum64()
	_ = h.WriteByte(1)
	return [2]uint64{first, h.Sum64()}
}
