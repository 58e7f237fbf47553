package sandbox

import (
	"encoding/json"
	"testing"
)

// Manifests fail, or have content that can be written as JSON; an event of the audit log
// writes only with a verb that changes objects.
func FuzzManifestsAndEvents(f *testing.F) {
	f.Add("apiVersion: v1\nkind: Pod\n---\n# nothing\n---\n{}")
	f.Add(`{"verb":"patch","stageTimestamp":"2030-01-01T00:00:00Z","annotations":{"authorization.k8s.io/decision":"allow"}}`)
	f.Add("- a\n- b")
	f.Add("a: &a [*a]")
	f.Fuzz(func(t *testing.T, text string) {
		objects, err := parseManifest([]byte(text))
		if err == nil {
			for _, object := range objects {
				if _, err := json.Marshal(object.Object); err != nil || len(object.Object) == 0 {
					t.Errorf("object %v of %q: %v", object, text, err)
				}
			}
		}
		var event Event
		if err := json.Unmarshal([]byte(text), &event); err == nil && event.Writes() && (event.Verb == "get" || event.Verb == "") {
			t.Errorf("event with verb %q writes", event.Verb)
		}
	})
}
