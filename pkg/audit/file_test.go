package audit

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func writeFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "volumes.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFileListsVolumes(t *testing.T) {
	created := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	full := Volume{Handle: "a", Name: "data", Age: "3d", Created: created, Size: 1 << 30, Attached: true, Source: "b",
		Context: map[string]string{"pool": "fast"}}
	const volume = `{"handle":"a","name":"data","age":"3d","creationTime":"2026-01-02T03:04:05Z","size":"1Gi","nodes":["n"],"source":"b","context":{"pool":"fast"}}`
	for name, tc := range map[string]struct {
		text string
		want []Volume
	}{
		"no volume":              {`[]`, nil},
		"array":                  {`[` + volume + `,{"handle":"b","size":5}]`, []Volume{full, {Handle: "b", Size: 5}}},
		"object":                 {`{"zone":{"a":1},"volumes":[` + volume + `]}`, []Volume{full}},
		"response of the driver": {`{"entries":[{"volume":{"volumeId":"a","capacityBytes":"7","volumeContext":{"name":"n"}},"status":{"publishedNodeIds":["n"]}}],"nextToken":""}`, []Volume{{Handle: "a", Name: "n", Size: 7, Attached: true, Context: map[string]string{"name": "n"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []Volume
			err := ReadFile(writeFile(t, tc.text), func(v Volume) { got = append(got, v) })
			if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreUnexported(Volume{})); err != nil || diff != "" {
				t.Errorf("%v, volumes (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestWrongFileIsRefusedInASentence(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"empty":               {``, "it is truncated"},
		"truncated array":     {`[{"handle":"a"},`, "it is truncated"},
		"truncated volume":    {`[{"handle":"a`, "it is truncated"},
		"truncated object":    {`{"volumes":[{"handle":"a"}]`, "it is truncated"},
		"truncated key":       {`{"vol`, "it is truncated"},
		"no handle":           {`[{"name":"a"}]`, "volume 1: it has no handle"},
		"handle listed twice": {`[{"handle":"a"},{"handle":"a"}]`, `volume 2: handle "a" is listed twice`},
		"wrong size":          {`[{"handle":"a","size":"much"}]`, "neither a number of bytes nor a quantity"},
		"no volumes":          {`{"disks":[]}`, "the object has no field volumes"},
		"volumes twice":       {`{"volumes":[],"entries":[]}`, "the field volumes is there twice"},
		"first page only":     {`{"entries":[{"volume":{"volumeId":"a"}}],"nextToken":"t"}`, "it is one page of several"},
		"token in front":      {`{"nextToken":"t","volumes":[{"handle":"a"}]}`, "it is one page of several"},
		"no array":            {`{"volumes":{}}`, "the field volumes is no array"},
		"a text":              {`"a"`, "want an array of volumes"},
		"two documents":       {`[] []`, "a second JSON document follows"},
		"no JSON":             {`handle,name`, "invalid character"},
	} {
		t.Run(name, func(t *testing.T) {
			err := ReadFile(writeFile(t, tc.text), func(Volume) {})
			var broken *fileError
			if !errors.As(err, &broken) || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error = %v, want %s", err, tc.want)
			}
		})
	}
	if err := ReadFile(filepath.Join(t.TempDir(), "none"), func(Volume) {}); err == nil {
		t.Error("a file that does not exist was read")
	}
}

func TestEveryTruncationIsNoticed(t *testing.T) {
	const whole = `{"driver":"d","volumes":[{"handle":"a","size":5,"context":{"k":"v"}},{"handle":"b"}]}`
	for length := range len(whole) {
		if err := ReadFile(writeFile(t, whole[:length]), func(Volume) {}); err == nil ||
			!strings.Contains(err.Error(), "truncated") {
			t.Errorf("%s: %v", whole[:length], err)
		}
	}
}
