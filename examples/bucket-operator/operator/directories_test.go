package operator

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

const uid = "0f8e1b1c-6d5c-4d52-9c53-5e8d4e2f0a11"

func TestOnlyBucketsAreListed(t *testing.T) {
	path := t.TempDir()
	d, err := open(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"lost+found", "photos"} {
		if err := os.Mkdir(filepath.Join(path, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // a crash before the status is written
		if err := d.make(uid); err != nil {
			t.Fatal(err)
		}
	}
	if names, err := d.all(); err != nil || !slices.Equal(names, []string{uid}) {
		t.Errorf("buckets %v, %v", names, err)
	}
	for range 2 {
		if err := d.remove(uid); err != nil {
			t.Error(err)
		}
	}
	if names, err := d.all(); err != nil || len(names) != 0 {
		t.Errorf("buckets %v, %v", names, err)
	}
	if err := d.remove("../" + filepath.Base(path)); err == nil {
		t.Error("a path leads out of the directory")
	}
}

func TestClosedDirectoryStaysClosedAcrossRestarts(t *testing.T) {
	path := t.TempDir()
	for _, step := range []struct {
		do     func(*directories) error
		closed bool
	}{
		{(*directories).reopen, false}, {(*directories).close, true}, {(*directories).close, true}, {(*directories).reopen, false},
	} {
		d, err := open(path)
		if err == nil {
			err = step.do(d)
		}
		if err != nil {
			t.Fatal(err)
		}
		again, err := open(path)
		if err != nil || again.isClosed() != step.closed {
			t.Errorf("closed: %v, %v, want %v", again.isClosed(), err, step.closed)
		}
	}
}
