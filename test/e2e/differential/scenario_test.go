package differential

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// scenario is a list of steps that run on both sides.
type scenario struct {
	Name string
	// Alone: the scenario changes objects that all scenarios share.
	Alone bool
	// Gate is "off" if ours runs with HonorPVReclaimPolicy=false.
	Gate string
	// Races has values that are not compared, because they depend on a race between two
	// workers of one side.
	Races []string
	Steps []step

	// topic is the name of the file. namespace is also the prefix of cluster-scoped names.
	topic, namespace string
}

// step is a line of a scenario.
type step struct {
	text, verb, kind, name string
	// value is the text after the colon, as JSON.
	value string
}

// UnmarshalJSON reads a step: a map with one entry, or only a verb.
func (s *step) UnmarshalJSON(text []byte) error {
	if err := json.Unmarshal(text, &s.text); err == nil {
		return s.parse()
	}
	var entry map[string]json.RawMessage
	if err := json.Unmarshal(text, &entry); err != nil {
		return err
	}
	for what, value := range entry {
		s.text, s.value = what, string(value)
	}
	if len(entry) != 1 {
		return fmt.Errorf("step %s: want one entry", text)
	}
	return s.parse()
}

func (s *step) parse() error {
	var rest string
	s.verb, rest, _ = strings.Cut(s.text, " ")
	s.kind, s.name, _ = strings.Cut(rest, " ")
	if _, known := verbs[s.verb]; !known {
		return fmt.Errorf("step %q: there is no such verb", s.text)
	}
	if _, known := resources[s.kind]; !known && s.verb != "sync" {
		return fmt.Errorf("step %q: there is no such kind", s.text)
	}
	if s.value == "null" {
		s.value = ""
	}
	return nil
}

// scenarios reads all scenarios, sorted by topic.
func scenarios() ([]*scenario, error) {
	files, err := filepath.Glob(filepath.Join("testdata", "scenarios", "*.yaml"))
	if err != nil {
		return nil, err
	}
	slices.Sort(files)
	var all []*scenario
	for number, file := range files {
		var found []*scenario
		if err := load(file, &found); err != nil {
			return nil, err
		}
		for i, one := range found {
			one.topic = strings.TrimSuffix(filepath.Base(file), ".yaml")
			one.namespace = fmt.Sprintf("namespace-%d-%d", number+1, i+1)
		}
		all = append(all, found...)
	}
	return all, nil
}

// load reads a YAML file strictly.
func load(file string, into any) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := yaml.UnmarshalStrict(text, into); err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	return nil
}
