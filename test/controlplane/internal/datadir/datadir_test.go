package datadir

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOneControlPlanePerDirectory(t *testing.T) {
	path := t.TempDir()
	_, release, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := Open(path); !errors.Is(err, ErrInUse) {
		t.Errorf("second Open: %v, want %v", err, ErrInUse)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	open(t, path)
}

func TestTemporaryDirectoryIsRemoved(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	directory, release, err := Open("")
	if err != nil {
		t.Fatal(err)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(string(directory)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("stat %s: %v, want it gone", directory, err)
	}
}

func TestAddressIsKept(t *testing.T) {
	directory := open(t, t.TempDir())
	first := listen(t, directory)
	if url, err := directory.URL(); err != nil || url != "https://"+first {
		t.Errorf("URL = %s, %v, want https://%s", url, err, first)
	}
	if again := listen(t, directory); again != first {
		t.Errorf("address %s became %s", first, again)
	}
}

func TestAddressInUseIsReplaced(t *testing.T) {
	directory := open(t, t.TempDir())
	taken, err := directory.Listen()
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	address := listen(t, directory)
	if address == taken.Addr().String() {
		t.Errorf("two listeners on %s", address)
	}
	if url, err := directory.URL(); err != nil || url != "https://"+address {
		t.Errorf("URL = %s, %v, want https://%s", url, err, address)
	}
}

func TestUnusedDirectoryHasNoURL(t *testing.T) {
	_, err := Dir(filepath.Join(t.TempDir(), "new")).URL()
	if err == nil || !strings.Contains(err.Error(), "none has ever run") {
		t.Errorf("URL: %v, want that none has ever run there", err)
	}
}

// open opens the directory at path until the test ends.
func open(t *testing.T, path string) Dir {
	t.Helper()
	directory, release, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := release(); err != nil {
			t.Error(err)
		}
	})
	return directory
}

// listen returns the address of the directory, and closes the listener.
func listen(t *testing.T, directory Dir) string {
	t.Helper()
	listener, err := directory.Listen()
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	return listener.Addr().String()
}
