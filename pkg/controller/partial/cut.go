package partial

import (
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// field is an encoded field of a message.
type field struct {
	number protowire.Number
	// tag and value are the two parts of its encoding.
	tag, value []byte
	// content is the text, message or list of bytes in the value; nested is false for a
	// number.
	content []byte
	nested  bool
}

// next returns the first field of the message and the fields after it. It returns false for
// an encoding that cannot be read.
func next(message []byte) (f field, rest []byte, ok bool) {
	number, kind, tag := protowire.ConsumeTag(message)
	if tag < 0 {
		return field{}, nil, false
	}
	size := protowire.ConsumeFieldValue(number, kind, message[tag:])
	if size < 0 {
		return field{}, nil, false
	}
	f = field{number: number, tag: message[:tag], value: message[tag : tag+size], nested: kind == protowire.BytesType}
	if f.nested {
		f.content, _ = protowire.ConsumeBytes(f.value)
	}
	return f, message[tag+size:], true
}

// cut appends the kept fields of a message, and reports whether the message could be read.
func cut(to, message []byte, fields Fields) ([]byte, bool) {
	for len(message) > 0 {
		f, rest, ok := next(message)
		if !ok {
			return nil, false
		}
		message = rest
		inner, keep := fields[f.number]
		switch {
		case !keep:
		case inner == nil || !f.nested:
			to = append(append(to, f.tag...), f.value...)
		default:
			if to, ok = f.change(to, func(to, content []byte) ([]byte, bool) { return cut(to, content, inner) }); !ok {
				return nil, false
			}
		}
	}
	return to, true
}

// edit appends the message with changed content of the fields with the number, and reports
// whether the message could be read.
func edit(to, message []byte, number protowire.Number, change func(to, content []byte) ([]byte, bool)) ([]byte, bool) {
	for len(message) > 0 {
		f, rest, ok := next(message)
		if !ok {
			return nil, false
		}
		message = rest
		if f.number != number || !f.nested {
			to = append(append(to, f.tag...), f.value...)
			continue
		}
		if to, ok = f.change(to, change); !ok {
			return nil, false
		}
	}
	return to, true
}

// change appends the field with changed content.
func (f field) change(to []byte, change func(to, content []byte) ([]byte, bool)) ([]byte, bool) {
	to = append(to, f.tag...)
	start := len(to)
	to, ok := change(to, f.content)
	if !ok {
		return nil, false
	}
	var length [maxVarint]byte
	return slices.Insert(to, start, protowire.AppendVarint(length[:0], uint64(len(to)-start))...), true
}

// maxVarint is the greatest length of an encoded number.
const maxVarint = 10

// has reports whether the message has the field at the path.
func has(message []byte, path Path) bool {
	content, found := contentOf(message, path[0])
	return found && (len(path) == 1 || has(content, path[1:]))
}

// twoFields returns the content of two fields of a message that has each of them at most once, and no other
// field with content. It returns false for any other message.
func twoFields(message []byte, first, second protowire.Number) (a, b []byte, ok bool) {
	var hasFirst, hasSecond bool
	for len(message) > 0 {
		f, rest, ok := next(message)
		switch {
		case !ok || !f.nested:
			return nil, nil, false
		case f.number == first && !hasFirst:
			a, hasFirst = f.content, true
		case f.number == second && !hasSecond:
			b, hasSecond = f.content, true
		case len(f.content) > 0 || f.number == first || f.number == second:
			return nil, nil, false
		}
		message = rest
	}
	return a, b, true
}

// contentOf returns the content of the first field with the number.
func contentOf(message []byte, number protowire.Number) ([]byte, bool) {
	for len(message) > 0 {
		f, rest, ok := next(message)
		if !ok {
			return nil, false
		}
		if f.number == number && f.nested {
			return f.content, true
		}
		message = rest
	}
	return nil, false
}
