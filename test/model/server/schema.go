package server

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// jsonSchema knows what decoding JSON into a Go type and encoding the value again does to a
// document: unknown and empty fields disappear, quantities and times are written in one way.
type jsonSchema struct {
	// leaf checks and normalizes a value that is no object, list or map.
	leaf func(value any) (any, error)
	// fields are those of an object; nil for anything else.
	fields map[string]jsonField
	// always are the fields that are encoded even if they are empty.
	always []string
	// element is the schema of the elements of a list, or of the values of a map.
	element *jsonSchema
	list    bool
}

// jsonField is a field of an object.
type jsonField struct {
	*jsonSchema
	// omitted: an empty value is not encoded. Fields that are pointers or objects are empty
	// only if they are null.
	omitted, pointer bool
}

// schemas are the schemas of Go types; types that contain themselves end here.
type schemas map[reflect.Type]*jsonSchema

// leaves are the types that encode themselves.
var leaves = map[reflect.Type]func(any) (any, error){
	reflect.TypeFor[metav1.Time]():       timeIn(time.RFC3339),
	reflect.TypeFor[metav1.MicroTime]():  timeIn(metav1.RFC3339Micro),
	reflect.TypeFor[resource.Quantity](): quantity,
}

func schemaOf[T any]() *jsonSchema {
	return schemas{}.of(reflect.TypeFor[T]())
}

func (s schemas) of(t reflect.Type) *jsonSchema {
	if known := s[t]; known != nil {
		return known
	}
	made := &jsonSchema{}
	s[t] = made
	switch {
	case leaves[t] != nil:
		made.leaf = leaves[t]
	case t.Kind() == reflect.Pointer:
		*made = *s.of(t.Elem())
	case reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()):
		made.leaf = unchanged
	case t.Kind() == reflect.Struct:
		made.fields = map[string]jsonField{}
		s.addFields(made, t)
	case t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8:
		made.element, made.list = s.of(t.Elem()), true
	case t.Kind() == reflect.Map:
		made.element = s.of(t.Elem())
	default:
		made.leaf = kindOf(t.Kind())
	}
	return made
}

func (s schemas) addFields(to *jsonSchema, t reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" && strings.Contains(options, "inline") {
			s.addFields(to, f.Type)
			continue
		}
		if name == "" || name == "-" {
			continue
		}
		kind := f.Type.Kind()
		added := jsonField{
			jsonSchema: s.of(f.Type),
			pointer:    kind == reflect.Pointer || kind == reflect.Struct,
			omitted: strings.Contains(options, "omitzero") || strings.Contains(options, "omitempty") &&
				kind != reflect.Struct,
		}
		to.fields[name] = added
		if !added.omitted {
			to.always = append(to.always, name)
		}
	}
}

// normalize returns the value as the API server would encode it. It changes documents in
// place.
func (s *jsonSchema) normalize(value any) (any, error) {
	switch {
	case s.leaf != nil:
		return s.leaf(value)
	case s.list:
		return s.normalizeList(value)
	}
	d, ok := value.(document)
	if !ok {
		return nil, fmt.Errorf("cannot decode %T into an object", value)
	}
	if s.fields == nil {
		return s.normalizeMap(d)
	}
	return s.normalizeObject(d)
}

func (s *jsonSchema) normalizeObject(d document) (any, error) {
	for name, value := range d {
		f, known := s.fields[name]
		if !known || value == nil {
			delete(d, name)
			continue
		}
		value, err := f.normalize(value)
		if err != nil {
			return nil, fmt.Errorf("decode %s: %w", name, err)
		}
		if f.omitted && (value == nil || !f.pointer && isEmpty(value)) {
			delete(d, name)
			continue
		}
		d[name] = value
	}
	return d, s.addAlways(d)
}

// addAlways adds the fields that are encoded even if they are empty.
func (s *jsonSchema) addAlways(d document) error {
	for _, name := range s.always {
		if _, has := d[name]; has {
			continue
		}
		f := s.fields[name]
		switch {
		case f.fields != nil && f.pointer:
			empty, err := f.normalizeObject(document{})
			if err != nil {
				return err
			}
			d[name] = empty
		case f.leaf != nil && !f.pointer:
			d[name] = zero(f.jsonSchema)
		default:
			d[name] = nil
		}
	}
	return nil
}

func (s *jsonSchema) normalizeMap(d document) (any, error) {
	for key, value := range d {
		if value == nil {
			d[key] = zero(s.element)
			continue
		}
		value, err := s.element.normalize(value)
		if err != nil {
			return nil, fmt.Errorf("decode %s: %w", key, err)
		}
		d[key] = value
	}
	return d, nil
}

func (s *jsonSchema) normalizeList(value any) (any, error) {
	list, ok := value.([]any)
	if !ok {
		return nil, fmt.Errorf("cannot decode %T into a list", value)
	}
	for i, element := range list {
		if element == nil {
			list[i] = zero(s.element)
			continue
		}
		normal, err := s.element.normalize(element)
		if err != nil {
			return nil, fmt.Errorf("decode element %d: %w", i, err)
		}
		list[i] = normal
	}
	return list, nil
}

// zero returns the empty value of a leaf; nil where that is encoded as null.
func zero(s *jsonSchema) any {
	if s.leaf == nil {
		return nil
	}
	for _, value := range []any{"", false, float64(0)} {
		if _, err := s.leaf(value); err == nil {
			return value
		}
	}
	return nil
}

func isEmpty(value any) bool {
	switch v := value.(type) {
	case string:
		return v == ""
	case bool:
		return !v
	case float64:
		return v == 0
	case []any:
		return len(v) == 0
	case document:
		return len(v) == 0
	}
	return value == nil
}
