package server

import (
	"fmt"
	"reflect"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

func unchanged(value any) (any, error) {
	return value, nil
}

// kindOf returns the check for values of a Go kind.
func kindOf(kind reflect.Kind) func(any) (any, error) {
	switch {
	case kind == reflect.String || kind == reflect.Slice:
		return ofType[string]
	case kind == reflect.Bool:
		return ofType[bool]
	case kind >= reflect.Int && kind <= reflect.Float64:
		return ofType[float64]
	}
	return unchanged
}

func ofType[T any](value any) (any, error) {
	if _, ok := value.(T); !ok {
		return nil, fmt.Errorf("cannot decode %T into %T", value, *new(T))
	}
	return value, nil
}

// timeIn returns the normalization of times to UTC in the layout.
func timeIn(layout string) func(any) (any, error) {
	return func(value any) (any, error) {
		s, err := ofType[string](value)
		if err != nil {
			return nil, err
		}
		parsed, err := time.Parse(layout, s.(string))
		if err != nil {
			return nil, fmt.Errorf("decode time: %w", err)
		}
		return parsed.UTC().Format(layout), nil
	}
}

// quantity returns the canonical form of a quantity.
func quantity(value any) (any, error) {
	if number, ok := value.(float64); ok {
		value = strconv.FormatFloat(number, 'f', -1, 64)
	}
	s, err := ofType[string](value)
	if err != nil {
		return nil, err
	}
	q, err := resource.ParseQuantity(s.(string))
	if err != nil {
		return nil, fmt.Errorf("decode quantity: %w", err)
	}
	return q.String(), nil
}
