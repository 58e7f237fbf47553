package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

// firstSeen is a file that remembers when an audit first reported a volume.
type firstSeen struct {
	Driver string               `json:"driver"`
	Since  map[string]time.Time `json:"firstReported"`
}

// Remember sets the ages of orphans that have none to the time since the first report that
// had the volume, orphan or doubtful. It keeps these times in a file, which it creates. An
// incomplete audit forgets no volume that it does not report.
func (r *Report) Remember(path string, now time.Time) error {
	before := firstSeen{Driver: r.Driver}
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fmt.Errorf("read the state of earlier audits: %w", err)
	default:
		if err := json.Unmarshal(text, &before); err != nil {
			return fmt.Errorf("read the state of earlier audits in %s: %w", path, err)
		}
	}
	if before.Driver != r.Driver {
		return fmt.Errorf("the state of earlier audits in %s is that of driver %q, not of %q: use a file for each driver",
			path, before.Driver, r.Driver)
	}
	seen := firstSeen{Driver: r.Driver, Since: map[string]time.Time{}}
	remember := func(handle string) time.Time {
		since, found := before.Since[handle]
		if !found {
			since = now.UTC().Truncate(time.Second)
		}
		seen.Since[handle] = since
		return since
	}
	if !r.IsComplete() {
		maps.Copy(seen.Since, before.Since)
	}
	for _, doubt := range r.Doubtful {
		remember(doubt.Handle)
	}
	for i := range r.Orphans {
		since := remember(r.Orphans[i].Handle)
		if r.Orphans[i].Age == "" {
			r.Orphans[i].Age = duration.HumanDuration(now.Sub(since))
		}
	}
	return seen.write(path)
}

// write replaces the file in one step.
func (f firstSeen) write(path string) error {
	text, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the state of audits: %w", err)
	}
	temporary, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("write the state of audits: %w", err)
	}
	_, err = temporary.Write(append(text, '\n'))
	err = errors.Join(err, temporary.Close())
	if err == nil {
		err = os.Rename(temporary.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write the state of audits: %w", errors.Join(err, os.Remove(temporary.Name())))
	}
	return nil
}
