package stories

import (
	"fmt"
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
}

// all returns all measures, the volumes left first.
func (r Result) all() []Measure {
	left := Measure{"volumes left in storage", fmt.Sprint(r.VolumesLeft)}
	if r.Unfinished != "" {
		left.Value += ", unfinished"
	}
	return append([]Measure{left}, r.Measures...)
}

// asPromised reports whether the story ended with nothing left.
func (r Result) asPromised() bool { return r.Unfinished == "" && r.VolumesLeft == 0 }

// broken returns an error that names the stories in which our programs left something.
// Upstream promises nothing.
func broken(results []Result) error {
	var stories []string
	for _, result := range results {
		if result.Pair == demo.Ours && !result.asPromised() {
			stories = append(stories,
				strings.TrimSuffix(fmt.Sprintf("%s: %d volumes left; %s", result.Story, result.VolumesLeft, result.Unfinished),
					"; "))
		}
	}
	if len(stories) == 0 {
		return nil
	}
	return fmt.Errorf("leave nothing behind: %s", strings.Join(stories, "; "))
}
