package docs_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/exeunt-io/exeunt/pkg/audit"
	"github.com/exeunt-io/exeunt/pkg/audit/verdict"
	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/forecast"
	"github.com/exeunt-io/exeunt/pkg/teardown"
)

// node is a JSON schema, or a part of one.
type node map[string]any

// schema collects the definitions of the Go types of an output.
type schema struct {
	t           *testing.T
	enums       map[reflect.Type][]string
	definitions node
	// names are those of definitions, by type.
	names map[string]reflect.Type
}

// newSchema returns a schema of types with the enums.
func newSchema(t *testing.T, enums map[reflect.Type][]string) schema {
	return schema{t: t, enums: enums, definitions: node{}, names: map[string]reflect.Type{}}
}

// blockerEnums are the enums of a blocker.
func blockerEnums() map[reflect.Type][]string {
	return map[reflect.Type][]string{
		reflect.TypeFor[blocker.Reason]():  namesFrom(blocker.ClaimExists),
		reflect.TypeFor[blocker.Verdict](): namesFrom(blocker.Gone),
		reflect.TypeFor[blocker.Source](): words(blocker.FromField, blocker.FromAnnotation, blocker.FromEvent,
			blocker.FromLease, blocker.FromCondition, blocker.FromWorkload, blocker.FromManagedFields, blocker.FromProbe,
			blocker.FromList),
	}
}

// whySchema returns docs/schemas/why.schema.json.
func whySchema(t *testing.T) string {
	s := newSchema(t, blockerEnums())
	report := s.of(reflect.TypeFor[blocker.Report]())
	list := node{
		"type": "object", "additionalProperties": false, "required": []string{"items"},
		"properties": node{
			"items":      node{"type": "array", "items": report},
			"younger":    node{"type": "integer", "description": "the number of objects that wait for less than --older-than; absent if there are none"},
			"incomplete": node{"type": "array", "items": node{"type": "string"}, "description": "what --all could not read; absent if all was read"},
		},
	}
	return s.text("exeunt why -o json: one object, or a list of several", node{"oneOf": []any{report, list}})
}

// auditSchema returns docs/schemas/audit.schema.json.
func auditSchema(t *testing.T) string {
	s := newSchema(t, map[reflect.Type][]string{reflect.TypeFor[verdict.Reason](): namesFrom(verdict.NoReason + 1)})
	return s.text("exeunt audit -o json", s.of(reflect.TypeFor[audit.Report]()))
}

// forecastSchema returns docs/schemas/forecast.schema.json.
func forecastSchema(t *testing.T) string {
	var firsts []string
	for _, first := range forecast.Firsts {
		firsts = append(firsts, string(first))
	}
	s := newSchema(t, map[reflect.Type][]string{reflect.TypeFor[forecast.First](): firsts})
	return s.text("exeunt forecast -o json", s.of(reflect.TypeFor[forecast.Report]()))
}

// teardownSchema returns docs/schemas/teardown.schema.json.
func teardownSchema(t *testing.T) string {
	s := newSchema(t, map[reflect.Type][]string{
		reflect.TypeFor[teardown.Phase](): words(teardown.NoPhase, teardown.Protected, teardown.Armed, teardown.Preparing,
			teardown.TearingDown, teardown.Stopped, teardown.Complete),
		reflect.TypeFor[teardown.Kind](): words(teardown.Volume, teardown.Snapshot, teardown.LoadBalancer, teardown.Ingress,
			teardown.Gateway, teardown.Participant),
		reflect.TypeFor[teardown.Plan](): words(teardown.PlanDelete, teardown.PlanKeep),
		reflect.TypeFor[teardown.Fate](): words(teardown.Planned, teardown.Gone, teardown.Kept, teardown.Remains,
			teardown.Unknown),
		reflect.TypeFor[teardown.Evidence](): words(teardown.ByFinalizer, teardown.NoEvidence),
	})
	maps.Copy(s.enums, blockerEnums())
	return s.text("exeunt teardown -o json: the plan, or the report", s.of(reflect.TypeFor[teardown.Document]()))
}

// words returns the values of an enum.
func words[T ~string](values ...T) []string {
	var all []string
	for _, value := range values {
		all = append(all, string(value))
	}
	return all
}

// text returns the schema of a document.
func (s schema) text(title string, root node) string {
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = title
	root["$defs"] = s.definitions
	text, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text) + "\n"
}

// of returns the schema of a Go type; structs and enums become definitions.
func (s schema) of(typ reflect.Type) node {
	name := s.nameOf(typ)
	if values, isEnum := s.enums[typ]; isEnum {
		s.definitions[name] = node{"enum": values}
		return node{"$ref": "#/$defs/" + name}
	}
	if typ == reflect.TypeFor[time.Time]() {
		return node{"type": "string", "format": "date-time"}
	}
	switch typ.Kind() {
	case reflect.String:
		return node{"type": "string"}
	case reflect.Bool:
		return node{"type": "boolean"}
	case reflect.Int, reflect.Int64:
		return node{"type": "integer"}
	case reflect.Pointer: // nil is null
		return node{"anyOf": []any{node{"type": "null"}, s.of(typ.Elem())}}
	case reflect.Slice:
		return node{"type": "array", "items": s.of(typ.Elem())}
	case reflect.Map:
		return node{"type": "object", "additionalProperties": s.of(typ.Elem()), "propertyNames": s.of(typ.Key())}
	case reflect.Struct:
		if _, known := s.definitions[name]; !known {
			s.definitions[name] = node{} // a type may contain itself
			s.definitions[name] = s.object(typ)
		}
		return node{"$ref": "#/$defs/" + name}
	default:
		s.t.Fatalf("no schema for %v", typ)
		return nil
	}
}

// nameOf returns the name of the definition of a type: that of the type, with its package if another one has the name.
func (s schema) nameOf(typ reflect.Type) string {
	name := typ.Name()
	if other, taken := s.names[name]; taken && other != typ {
		base := path.Base(typ.PkgPath())
		name = strings.ToUpper(base[:1]) + base[1:] + name
	}
	s.names[name] = typ
	return name
}

// object returns the schema of a struct. A field is always present, unless its tag says omitempty: then it is never null.
func (s schema) object(typ reflect.Type) node {
	properties, required := node{}, []string{}
	for field := range fields(typ) {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "-" || !field.IsExported() {
			continue
		}
		switch {
		case name == "" || options != "" && options != "omitempty":
			s.t.Fatalf("field %s of %v: want a name and no option but omitempty in the tag", field.Name, typ)
		case options == "":
			properties[name] = s.of(field.Type)
			required = append(required, name)
		case field.Type.Kind() == reflect.Pointer:
			properties[name] = s.of(field.Type.Elem())
		default:
			properties[name] = s.of(field.Type)
		}
	}
	return node{"type": "object", "additionalProperties": false, "required": required, "properties": properties}
}

func fields(typ reflect.Type) func(yield func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for i := range typ.NumField() {
			if !yield(typ.Field(i)) {
				return
			}
		}
	}
}

// namesFrom returns the names of the values of an enum, from the first one on.
func namesFrom[T interface {
	~int
	String() string
}](first T) []string {
	var names []string
	for value := first; !strings.HasPrefix(value.String(), "invalid("); value++ {
		names = append(names, value.String())
	}
	return names
}

func TestSchemaNamesEveryReason(t *testing.T) {
	text := whySchema(t)
	for _, reason := range blocker.Reasons() {
		if !strings.Contains(text, fmt.Sprintf("%q", reason.String())) {
			t.Errorf("the schema has no reason %v", reason)
		}
	}
}
