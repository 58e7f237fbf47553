package docs_test

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/exeunt-io/exeunt/pkg/blocker"
)

// node is a JSON schema, or a part of one.
type node map[string]any

// schema collects the definitions of the Go types of an output.
type schema struct {
	t           *testing.T
	enums       map[reflect.Type][]string
	definitions node
}

// whySchema returns docs/schemas/why.schema.json.
func whySchema(t *testing.T) string {
	s := schema{t: t, definitions: node{}, enums: map[reflect.Type][]string{
		reflect.TypeFor[blocker.Reason]():  texts(t, blocker.Reasons()...),
		reflect.TypeFor[blocker.Verdict](): texts(t, blocker.Gone, blocker.None, blocker.Waiting, blocker.Unknown, blocker.Stuck),
		reflect.TypeFor[blocker.Source](): {
			string(blocker.FromField), string(blocker.FromEvent), string(blocker.FromLease), string(blocker.FromCondition),
			string(blocker.FromWorkload), string(blocker.FromManagedFields), string(blocker.FromProbe), string(blocker.FromList),
		},
	}}
	report := s.of(reflect.TypeFor[blocker.Report]())
	list := node{
		"type": "object", "additionalProperties": false, "required": []string{"items"},
		"properties": node{"items": node{"type": "array", "items": report}},
	}
	return s.text("exeunt why -o json: one object, or a list of several", node{"oneOf": []any{report, list}})
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
	name := typ.Name()
	if values, isEnum := s.enums[typ]; isEnum {
		s.definitions[name] = node{"enum": values}
		return node{"$ref": "#/$defs/" + name}
	}
	switch typ.Kind() {
	case reflect.String:
		return node{"type": "string"}
	case reflect.Bool:
		return node{"type": "boolean"}
	case reflect.Slice:
		return node{"type": "array", "items": s.of(typ.Elem())}
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

// object returns the schema of a struct. All fields are always present.
func (s schema) object(typ reflect.Type) node {
	properties, required := node{}, []string{}
	for field := range fields(typ) {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "-" || !field.IsExported() {
			continue
		}
		if name == "" || options != "" {
			s.t.Fatalf("field %s of %v: want a name and no options in the tag", field.Name, typ)
		}
		properties[name] = s.of(field.Type)
		required = append(required, name)
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

// texts returns the values of an enum as JSON has them.
func texts[T encoding.TextMarshaler](t *testing.T, values ...T) []string {
	t.Helper()
	found := make([]string, len(values))
	for i, value := range values {
		text, err := value.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		found[i] = string(text)
	}
	return found
}

func TestSchemaHasEveryVerdict(t *testing.T) {
	// Values that are not in the enum of the schema would make valid output invalid.
	for value := blocker.Gone; ; value++ {
		name := value.String()
		if strings.HasPrefix(name, "invalid(") {
			return
		}
		if !strings.Contains(whySchema(t), fmt.Sprintf("%q", name)) {
			t.Errorf("the schema has no verdict %s", name)
		}
	}
}

func TestSchemaNamesEveryReason(t *testing.T) {
	text := whySchema(t)
	for _, reason := range blocker.Reasons() {
		if !strings.Contains(text, fmt.Sprintf("%q", reason.String())) {
			t.Errorf("the schema has no reason %v", reason)
		}
	}
}
