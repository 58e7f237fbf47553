package guest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Record is what a controller knows of a guest beside the object.
type Record struct {
	UID types.UID `json:"uid"`
	// Key is the namespace and the name of the object.
	Key string `json:"key"`
	// Started: a guest of the object has run.
	Started bool `json:"started,omitempty"`
	// Deadline is that of the last request to shut down, or the zero time.
	Deadline time.Time `json:"deadline,omitzero"`
	// Forced is why the guest was powered off, empty before.
	Forced string `json:"forced,omitempty"`
	// Reported: an event says how the guest ended.
	Reported bool `json:"reported,omitempty"`
}

// Dir is the state directory of one controller.
type Dir struct {
	path string
	lock *os.File

	mu      sync.Mutex
	records map[types.UID]Record
}

const (
	recordFile  = "record.json"
	guestFile   = "guest"
	consoleFile = "console.log"
)

// Open creates the directory if it is missing, and reads its records. One controller at a time can have it open.
func Open(path string) (*Dir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("find the state directory: %w", err)
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("make the state directory: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(path, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the state directory: %w", err)
	}
	d := &Dir{path: path, lock: lock, records: map[types.UID]Record{}}
	switch locked, err := tryLock(lock); {
	case err != nil:
		return nil, errors.Join(fmt.Errorf("lock the state directory: %w", err), d.Close())
	case !locked:
		return nil, errors.Join(fmt.Errorf("another controller uses the state directory %s", path), d.Close())
	}
	if err := d.read(); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// Close lets another controller open the directory. Guests run on.
func (d *Dir) Close() error { return d.lock.Close() }

func (d *Dir) read() error {
	folders, err := os.ReadDir(d.path)
	if err != nil {
		return fmt.Errorf("read records: %w", err)
	}
	for _, folder := range folders {
		if !folder.IsDir() {
			continue
		}
		file := filepath.Join(d.path, folder.Name(), recordFile)
		text, err := os.ReadFile(file)
		switch {
		case errors.Is(err, fs.ErrNotExist): // the controller ended before it was complete
			continue
		case errors.Is(err, fs.ErrPermission): // not ours, such as lost+found
			continue
		case err != nil:
			return fmt.Errorf("read record: %w", err)
		}
		var record Record
		if err := json.Unmarshal(text, &record); err != nil {
			return fmt.Errorf("read record %s: %w", file, err)
		}
		d.records[record.UID] = record
	}
	return nil
}

// Records returns all records.
func (d *Dir) Records() []Record {
	d.mu.Lock()
	defer d.mu.Unlock()
	var found []Record
	for _, record := range d.records {
		found = append(found, record)
	}
	return found
}

// Record returns the record of an object, and whether there is one.
func (d *Dir) Record(uid types.UID) (Record, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	record, found := d.records[uid]
	return record, found
}

// Save writes a record so that it survives a crash of the machine.
func (d *Dir) Save(record Record) error {
	folder := d.of(record.UID)
	text, err := json.Marshal(record)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("save record: %w", err)
	}
	if _, known := d.Record(record.UID); !known { // else a file that is missing has to be missed
		err = write(filepath.Join(folder, guestFile), nil, os.O_CREATE)
	}
	fresh := filepath.Join(folder, recordFile+".new")
	if err == nil {
		err = write(fresh, text, os.O_CREATE|os.O_TRUNC)
	}
	if err == nil {
		err = errors.Join(os.Rename(fresh, filepath.Join(folder, recordFile)), syncNames(folder), syncNames(d.path))
	}
	if err != nil {
		return fmt.Errorf("save record: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.records[record.UID] = record
	return nil
}

// Note saves a record that is known. What a full disk does not take is known until this process ends: the end of a guest
// and of its object does not wait for room.
func (d *Dir) Note(record Record) error {
	err := d.Save(record)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.records[record.UID] = record
	return err
}

func write(file string, text []byte, flag int) error {
	f, err := os.OpenFile(file, os.O_WRONLY|flag, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Sync(), f.Close())
}

// syncNames writes the names of a directory to the disk.
func syncNames(folder string) error {
	f, err := os.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Remove removes what belongs to a guest that has ended. The record goes first: without a guest file it proves nothing.
func (d *Dir) Remove(uid types.UID) error {
	err := os.Remove(filepath.Join(d.of(uid), recordFile))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err == nil {
		err = os.RemoveAll(d.of(uid))
	}
	if err != nil {
		return fmt.Errorf("remove record: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.records, uid)
	return nil
}

func (d *Dir) of(uid types.UID) string { return filepath.Join(d.path, string(uid)) }
