package runner

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// hasField reports whether managed fields have the path.
func hasField(raw []byte, path ...string) bool {
	for _, step := range path {
		var fields map[string]json.RawMessage
		if json.Unmarshal(raw, &fields) != nil {
			return false
		}
		next, is := fields[step]
		if !is {
			return false
		}
		raw = next
	}
	return true
}

// newer reports whether the version is the other one or a later one. Versions that are no numbers are.
func newer(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err != nil || order >= 0
}
