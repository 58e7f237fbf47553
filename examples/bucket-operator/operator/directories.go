package operator

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"

	"k8s.io/apimachinery/pkg/types"
)

// closed is the file that says that all directories were removed because the cluster goes away.
const closed = ".closed"

// ofBucket matches the UID of an object.
var ofBucket = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// directories are the buckets outside of the cluster, by the UID of their objects. A path never leads out of the root.
type directories struct{ root *os.Root }

// open opens the directory of the buckets, and makes it if it is missing.
func open(path string) (*directories, error) {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, fmt.Errorf("make directory: %w", err)
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("open directory: %w", err)
	}
	return &directories{root}, nil
}

func (d *directories) make(uid types.UID) error {
	if err := d.root.Mkdir(string(uid), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make bucket: %w", err)
	}
	return nil
}

func (d *directories) remove(name string) error {
	if err := d.root.RemoveAll(name); err != nil {
		return fmt.Errorf("remove bucket: %w", err)
	}
	return nil
}

// all returns the names of the buckets. What has no UID as its name is not ours.
func (d *directories) all() ([]string, error) {
	entries, err := fs.ReadDir(d.root.FS(), ".")
	if err != nil {
		return nil, fmt.Errorf("read directory: %w", err)
	}
	var names []string
	for _, entry := range entries {
		if entry.IsDir() && ofBucket.MatchString(entry.Name()) {
			names = append(names, entry.Name())
		}
	}
	return names, nil
}

// close forbids new buckets: one that is made after the operator has left Alive would be left behind.
func (d *directories) close() error {
	file, err := d.root.Create(closed)
	if err != nil {
		return fmt.Errorf("close the directory: %w", err)
	}
	return file.Close()
}

// reopen allows new buckets: the operator is registered with an Alive that is not deleted.
func (d *directories) reopen() error {
	if err := d.root.Remove(closed); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reopen the directory: %w", err)
	}
	return nil
}

func (d *directories) isClosed() bool {
	_, err := d.root.Stat(closed)
	return !errors.Is(err, fs.ErrNotExist)
}
