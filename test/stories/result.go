package stories

import (
	"fmt"
	"slices"
	"strings"

	"github.com/exeunt-io/exeunt/test/demo"
)

// Result is what a pair made of a story.
type Result struct {
	Story string    `json:"story"`
	Pair  demo.Pair `json:"pair"`
	// VolumesLeft is the number of volumes that are left in the storage system.
	VolumesLeft int       `json:"volumesLeft"`
	Measures    []Measure `json:"measures,omitempty"`
	// Unfinished is what did not happen within the time limit, or "".
	Unfinished string `json:"unfinished,omitempty"`
	// NoVolumes: the story has none.
	NoVolumes bool `json:"noVolumes,omitempty"`
}

// all returns all measures, the volumes left first.
func (r Result) all() []Measure {
	if r.NoVolumes {
		return r.Measures
	}
	left := Measure{Name: "volumes left in storage", Value: fmt.Sprint(r.VolumesLeft)}
	if r.Unfinished != "" {
		left.Value += ", unfinished"
	}
	return append([]Measure{left}, r.Measures...)
}

// asPromised reports whether the story ended with nothing left, and with what was promised.
func (r Result) asPromised() bool {
	return r.Unfinished == "" && r.VolumesLeft == 0 && r.missed() == ""
}

// missed returns what was measured instead of what was promised, or "".
func (r Result) missed() string {
	for _, measure := range r.Measures {
		if measure.Promised != "" && measure.Value != measure.Promised {
			return fmt.Sprintf("%s: %s instead of %s", measure.Name, measure.Value, measure.Promised)
		}
	}
	return ""
}

// failure says what a pair left, did not finish, or did not do.
func (r Result) failure() string {
	parts := []string{fmt.Sprintf("%d volumes left", r.VolumesLeft), r.Unfinished, r.missed()}
	if r.NoVolumes {
		parts = parts[1:]
	}
	return r.Story + ": " + strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), "; ")
}

// broken returns an error that names the stories in which our programs left something, or broke a promise.
// Upstream promises nothing.
func broken(results []Result) error {
	var stories []string
	for _, result := range results {
		if result.Pair == demo.Ours && !result.asPromised() {
			stories = append(stories, result.failure())
		}
	}
	if len(stories) == 0 {
		return nil
	}
	return fmt.Errorf("keep what was promised: %s", strings.Join(stories, "; "))
}
