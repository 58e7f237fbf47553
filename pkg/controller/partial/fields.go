package partial

import (
	"fmt"
	"reflect"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// Fields are the fields of a protobuf message that are kept, by their numbers. A field
// with nil Fields is kept whole, any other field keeps these fields of its message.
type Fields map[protowire.Number]Fields

// Only returns the fields with the paths, for an API type. A path has the protobuf
// names of fields, as "metadata.name".
func Only(object any, paths ...string) Fields {
	fields := Fields{}
	for _, path := range paths {
		fields.add(reflect.TypeOf(object), strings.Split(path, "."))
	}
	return fields
}

// Except returns all fields but those with the paths.
func Except(object any, paths ...string) Fields {
	fields := every(reflect.TypeOf(object))
	for _, path := range paths {
		fields.remove(reflect.TypeOf(object), strings.Split(path, "."))
	}
	return fields
}

func (f Fields) add(message reflect.Type, path []string) {
	number, inner := fieldOf(message, path[0])
	if len(path) == 1 {
		f[number] = nil
		return
	}
	if f[number] == nil {
		f[number] = Fields{}
	}
	f[number].add(inner, path[1:])
}

func (f Fields) remove(message reflect.Type, path []string) {
	number, inner := fieldOf(message, path[0])
	if len(path) == 1 {
		delete(f, number)
		return
	}
	if f[number] == nil {
		f[number] = every(inner)
	}
	f[number].remove(inner, path[1:])
}

// every returns all fields of the message.
func every(message reflect.Type) Fields {
	fields := Fields{}
	for field := range structOf(message).Fields() {
		if number, _, ok := tagOf(field); ok {
			fields[number] = nil
		}
	}
	return fields
}

// fieldOf returns the number and the type of a field. Paths are constants of the program:
// a wrong one is a programming error.
func fieldOf(message reflect.Type, name string) (protowire.Number, reflect.Type) {
	for field := range structOf(message).Fields() {
		if number, named, ok := tagOf(field); ok && named == name {
			return number, field.Type
		}
	}
	panic(fmt.Sprintf("%s has no protobuf field %q", message, name))
}

// tagOf returns the number and the name in a tag like `protobuf:"bytes,3,opt,name=uid"`.
func tagOf(field reflect.StructField) (number protowire.Number, name string, ok bool) {
	tag, ok := field.Tag.Lookup("protobuf")
	if !ok {
		return 0, "", false
	}
	for part := range strings.SplitSeq(tag, ",") {
		if value, named := strings.CutPrefix(part, "name="); named {
			name = value
		}
	}
	_, err := fmt.Sscanf(strings.SplitN(tag, ",", 3)[1], "%d", &number)
	return number, name, err == nil
}

// structOf returns the struct type of a message, of a pointer to it or of a list of it.
func structOf(message reflect.Type) reflect.Type {
	for message.Kind() == reflect.Pointer || message.Kind() == reflect.Slice {
		message = message.Elem()
	}
	return message
}
