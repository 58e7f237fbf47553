package enumtest

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// ExpectKnown wants every enum of a state or decision to have one of its values.
func ExpectKnown(t *testing.T, value any) {
	t.Helper()
	if named, is := value.(fmt.Stringer); is && strings.HasPrefix(named.String(), "invalid(") {
		t.Errorf("%T has the value %v", value, named)
	}
	content := reflect.ValueOf(value)
	if content.Kind() != reflect.Struct {
		return
	}
	for i := range content.NumField() {
		if content.Type().Field(i).IsExported() {
			ExpectKnown(t, content.Field(i).Interface())
		}
	}
}
