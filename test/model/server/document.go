package server

import (
	"bytes"
	"encoding/json"
	"reflect"
)

// document is a JSON object.
type document = map[string]any

func decode(text string) (document, error) {
	var d document
	err := json.Unmarshal([]byte(text), &d)
	return d, err
}

// encode returns the JSON with sorted keys.
func encode(d document) string {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	// Documents come from JSON, so they can be encoded.
	_ = encoder.Encode(d)
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
}

// at returns the value at the path, nil if there is none.
func at(d document, path ...string) any {
	for i, step := range path {
		if i == len(path)-1 {
			return d[step]
		}
		d, _ = d[step].(document)
	}
	return d
}

// text returns the string at the path, and whether there is one.
func text(d document, path ...string) (string, bool) {
	s, ok := at(d, path...).(string)
	return s, ok
}

// child returns the document in the field. It is created if it does not exist.
func child(d document, field string) document {
	inner, ok := d[field].(document)
	if !ok {
		inner = document{}
		d[field] = inner
	}
	return inner
}

// setDefault sets the field unless it has a value.
func setDefault(d document, field string, value any) {
	if d[field] == nil || d[field] == "" {
		d[field] = value
	}
}

// put sets the field, or removes it if value is nil.
func put(d document, field string, value any) {
	if value == nil {
		delete(d, field)
		return
	}
	d[field] = value
}

func equal(a, b any) bool {
	return reflect.DeepEqual(a, b)
}

// without returns a copy of the document without the fields.
func without(d document, fields ...string) document {
	rest := make(document, len(d))
	for field, value := range d {
		rest[field] = value
	}
	for _, field := range fields {
		delete(rest, field)
	}
	return rest
}
