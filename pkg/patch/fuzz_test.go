package patch_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/patch"
)

// An annotation key is one step of a JSON pointer that can be read back, and the encoded
// patch has the key and the value.
func FuzzAnnotate(f *testing.F) {
	f.Add("pv.kubernetes.io/bound~by", "yes")
	f.Add("~1~0/", "")
	f.Add("", "\x00\"")
	f.Fuzz(func(t *testing.T, key, value string) {
		step := patch.Escape(key)
		if strings.Contains(step, "/") || strings.NewReplacer("~1", "/", "~0", "~").Replace(step) != key {
			t.Errorf("Escape(%q) = %q", key, step)
		}
		if !utf8.ValidString(key) || !utf8.ValidString(value) {
			return // the API server accepts UTF-8 only
		}
		object := &metav1.ObjectMeta{UID: "u", ResourceVersion: "3", Annotations: map[string]string{"x": "y"}}
		text, err := patch.For(object).Annotate(object, map[string]string{key: value}).Bytes()
		if err != nil {
			t.Fatal(err)
		}
		var operations []struct{ Op, Path, Value string }
		if err := json.Unmarshal(text, &operations); err != nil {
			t.Fatalf("read %s: %v", text, err)
		}
		if len(operations) != 2 || operations[0].Op != "test" || operations[1].Path != "/metadata/annotations/"+step ||
			operations[1].Value != value {
			t.Errorf("annotation %q=%q became %s", key, value, text)
		}
	})
}
