package sandbox

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func TestParseManifest(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want []string
	}{
		"documents keep their order":   {"kind: A\nmetadata: {name: a}\n---\nkind: B\nmetadata: {name: b}\n", []string{"A/a", "B/b"}},
		"empty documents are left out": {"---\n# nothing\n---\nkind: A\nmetadata: {name: a}\n---\n", []string{"A/a"}},
		"nothing is no object":         {"", nil},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := parseManifest([]byte(tc.text))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, object := range objects {
				got = append(got, object.GetKind()+"/"+object.GetName())
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("parsed %v, want %v", got, tc.want)
			}
		})
	}
}

func TestManifestsAreReadFromEveryYAMLFile(t *testing.T) {
	objects, err := readManifests(fstest.MapFS{
		"rbac/role.yaml":      {Data: []byte("kind: ClusterRole\nmetadata: {name: role}\n")},
		"rbac/namespace.yaml": {Data: []byte("kind: Namespace\nmetadata: {name: ns}\n")},
		"README.md":           {Data: []byte("no manifest: {")},
	})
	if err != nil || len(objects) != 2 {
		t.Errorf("read %d objects, %v, want 2", len(objects), err)
	}
}

func TestUnreadableManifestIsNamed(t *testing.T) {
	_, err := readManifests(fstest.MapFS{"bad.yaml": {Data: []byte("kind: [")}})
	if err == nil || !strings.Contains(err.Error(), "bad.yaml") {
		t.Errorf("readManifests: %v, want the file's name", err)
	}
}
