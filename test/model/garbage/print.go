package garbage

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

// printer writes all that a collector remembers, so that two equal texts mean equal memory.
type printer struct {
	out strings.Builder
	now time.Time
	// epochs: the numbers of epochs matter, because a barrier runs.
	epochs bool
}

// print returns a text of the memory of the collector.
func (a *actor) print() string {
	p := &printer{now: a.clock.Now(), epochs: a.working[Barrier]}
	for _, root := range a.collector.Memory() {
		p.value(reflect.ValueOf(root).Elem(), true)
		p.out.WriteByte('\n')
	}
	return p.out.String()
}

var (
	timeType = reflect.TypeFor[time.Time]()
	kindType = reflect.TypeFor[*graph.Kind]()
)

// value writes a value. A node of the graph is written as a whole in the map of all nodes only,
// elsewhere by its UID.
func (p *printer) value(v reflect.Value, whole bool) {
	t := v.Type()
	switch {
	case t == timeType:
		p.time(*(*time.Time)(addressable(v)))
	case t == kindType:
		if !v.IsNil() {
			p.out.WriteString(v.Elem().FieldByName("Resource").String())
		}
	case t.Kind() == reflect.Pointer && t.Elem().Name() == "node" && !whole:
		p.out.WriteString(v.Elem().FieldByName("uid").String())
	default:
		p.kind(v)
	}
}

func addressable(v reflect.Value) unsafe.Pointer {
	if v.CanAddr() {
		return v.Addr().UnsafePointer()
	}
	copied := reflect.New(v.Type())
	copied.Elem().Set(v)
	return copied.UnsafePointer()
}

func (p *printer) kind(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			p.out.WriteByte('~')
			return
		}
		p.value(v.Elem(), false)
	case reflect.Struct:
		p.fields(v)
	case reflect.Map:
		p.entries(v)
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			p.value(v.Index(i), false)
			p.out.WriteByte(',')
		}
	case reflect.String:
		p.out.WriteString(v.String())
	case reflect.Bool:
		p.out.WriteString(strconv.FormatBool(v.Bool()))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		p.out.WriteString(strconv.FormatInt(v.Int(), 10))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		p.out.WriteString(strconv.FormatUint(v.Uint(), 10))
	default:
		p.out.WriteString("?" + v.Kind().String())
	}
}

func (p *printer) fields(v reflect.Value) {
	p.out.WriteByte('{')
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		if v.Field(i).IsZero() || name == "epoch" && !p.epochs {
			continue
		}
		p.out.WriteString(name)
		p.out.WriteByte(':')
		p.value(v.Field(i), false)
		p.out.WriteByte(' ')
	}
	p.out.WriteByte('}')
}

func (p *printer) entries(v reflect.Value) {
	lines := make([]string, 0, v.Len())
	for entries := v.MapRange(); entries.Next(); {
		inner := printer{now: p.now, epochs: p.epochs}
		inner.value(entries.Key(), false)
		inner.out.WriteByte('=')
		inner.value(entries.Value(), entries.Key().Kind() == reflect.String)
		lines = append(lines, inner.out.String())
	}
	slices.Sort(lines)
	for _, line := range lines {
		p.out.WriteString(line)
		p.out.WriteByte(';')
	}
}

// time writes how many seconds ago or ahead a time is, as far as it makes a difference.
func (p *printer) time(t time.Time) {
	if t.IsZero() {
		p.out.WriteString("never")
		return
	}
	age := p.now.Sub(t)
	age = max(-longAgo*time.Second, min(longAgo*time.Second, age))
	p.out.WriteString(age.String())
}
