package csimock

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

// stateVersion is the format of the state file that this package writes.
const stateVersion = 1

// document is the content of the state file.
type document struct {
	Version   int         `json:"version"`
	Driver    string      `json:"driver"`
	Sequence  uint64      `json:"sequence"`
	Volumes   []*Volume   `json:"volumes"`
	Snapshots []*Snapshot `json:"snapshots"`
	Groups    []*Group    `json:"groups"`
	Health    []Condition `json:"health,omitempty"`
}

// stateFile keeps a store on disk. It survives a crash of the process, not of the machine:
// the file is not synced.
type stateFile struct {
	path   string // empty for no file
	driver string

	mu    sync.Mutex
	saved uint64 // the version of the store in the file
}

// load returns the store in the file, an empty store without a file. A file that cannot be
// decoded is left unchanged.
func (f *stateFile) load() (*store, error) {
	if f.path == "" {
		return newStore(), nil
	}
	data, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return newStore(), nil
	}
	if err != nil {
		return nil, fmt.Errorf("read state file: %w", err)
	}
	loaded, err := decodeState(data, f.driver)
	if err != nil {
		return nil, fmt.Errorf("load state file %s: %w", f.path, err)
	}
	return loaded, nil
}

// save writes the store to the file if it changed. Concurrent calls share one write.
func (f *stateFile) save(s *store) error {
	if f.path == "" {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	version, data, err := s.encode(f.driver, f.saved)
	if err != nil || version == f.saved {
		return err
	}
	if err := replaceFile(f.path, data); err != nil {
		return fmt.Errorf("write state file: %w", err)
	}
	f.saved = version
	return nil
}

// encode returns the version of the store and, if it differs from the saved version, the
// content of the state file.
func (s *store) encode(driver string, saved uint64) (uint64, []byte, error) {
	s.Lock()
	defer s.Unlock()
	if s.version == saved {
		return saved, nil, nil
	}
	data, err := json.MarshalIndent(document{
		Version:   stateVersion,
		Driver:    driver,
		Sequence:  s.sequence,
		Volumes:   s.volumes.sorted(),
		Snapshots: s.snapshots.sorted(),
		Groups:    s.groups.sorted(),
		Health:    s.health,
	}, "", "  ")
	if err != nil {
		return 0, nil, fmt.Errorf("encode state: %w", err)
	}
	return s.version, append(data, '\n'), nil
}

// decodeState reads the content of a state file written for the named driver.
func decodeState(data []byte, driver string) (*store, error) {
	var content document
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&content); err != nil {
		return nil, fmt.Errorf("decode JSON: %w", err)
	}
	switch {
	case decoder.More():
		return nil, errors.New("more than one JSON document")
	case content.Version != stateVersion:
		return nil, fmt.Errorf("format version is %d, want %d", content.Version, stateVersion)
	case content.Driver != driver:
		return nil, fmt.Errorf("it belongs to driver %q, not to %q", content.Driver, driver)
	}
	s := newStore()
	s.sequence = content.Sequence
	return s, s.fill(content)
}

// fill adds the records of a state file to an empty store.
func (s *store) fill(content document) error {
	for _, v := range content.Volumes {
		if err := checkRecord(s.volumes, v, s.sequence); err != nil {
			return err
		}
		if v.Capacity < 0 {
			return fmt.Errorf("volume %q has a negative capacity", v.ID)
		}
		if err := validateConditions(v.Health, csi.VolumeHealthErrorType_value); err != nil {
			return fmt.Errorf("health of volume %q: %w", v.ID, err)
		}
		s.addVolume(v)
	}
	for _, snapshot := range content.Snapshots {
		if err := checkRecord(s.snapshots, snapshot, s.sequence); err != nil {
			return err
		}
		s.snapshots.add(snapshot)
	}
	for _, group := range content.Groups {
		if err := checkRecord(s.groups, group, s.sequence); err != nil {
			return err
		}
		s.groups.add(group)
	}
	if err := validateConditions(content.Health, csi.StorageHealthErrorType_value); err != nil {
		return fmt.Errorf("health of storage: %w", err)
	}
	s.health = content.Health
	return s.checkGroups()
}

// checkGroups refuses a group with missing snapshots.
func (s *store) checkGroups() error {
	for _, group := range s.groups.byID {
		for _, id := range group.Snapshots {
			if _, found := s.snapshots.byID[id]; !found {
				return fmt.Errorf("snapshot %q of group %q is missing", id, group.ID)
			}
		}
	}
	return nil
}

// checkRecord refuses a record that the driver cannot have written: null, without an ID,
// with a sequence above the last one, or a duplicate.
func checkRecord[T interface {
	comparable
	record() *Record
}](c catalog[T], item T, last uint64) error {
	var none T
	if item == none {
		return errors.New("a record is null")
	}
	r := item.record()
	_, sameID := c.byID[r.ID]
	_, sameName := c.byName[r.Name]
	switch {
	case r.ID == "" || r.Sequence == 0 || r.Sequence > last:
		return fmt.Errorf("record %q has sequence %d of %d", r.ID, r.Sequence, last)
	case sameID || sameName:
		return fmt.Errorf("record %q named %q is a duplicate", r.ID, r.Name)
	}
	return nil
}

// replaceFile replaces the file atomically: readers see the old or the new content.
func replaceFile(path string, data []byte) error {
	temporary, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = temporary.Write(data)
	err = errors.Join(err, temporary.Close())
	if err == nil {
		err = os.Rename(temporary.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temporary.Name()))
	}
	return nil
}
