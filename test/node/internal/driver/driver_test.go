package driver

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// newDriver returns a driver with an empty directory of volumes.
func newDriver(t *testing.T) *Driver {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, VolumesDir), 0o700); err != nil {
		t.Fatal(err)
	}
	return &Driver{config: Config{Dir: dir}}
}

func TestVolumeIsCreatedAndDeletedTwice(t *testing.T) {
	driver := newDriver(t)
	dir := filepath.Join(driver.config.Dir, VolumesDir, "one")
	for range 2 {
		if _, err := driver.CreateVolume(t.Context(), &csi.CreateVolumeRequest{Name: "one"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := driver.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: "one"}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the data is still there: %v", err)
	}
}

func TestKubeletFindsDriverThatServes(t *testing.T) {
	sockets := (&Driver{config: Config{Socket: "/plugins/csi.sock", Registration: "/registry"}}).services()
	if len(sockets) != 2 || sockets[0].socket != "/plugins/csi.sock" ||
		sockets[1].socket != "/registry/directory.exeunt.io-reg.sock" {
		t.Errorf("the sockets are opened in the order %v, want the one that kubelet looks for last", sockets)
	}
}

func TestSocketThatCannotBeOpenedIsNamed(t *testing.T) {
	dir := t.TempDir()
	err := Serve(t.Context(), Config{Dir: dir, Socket: filepath.Join(dir, "missing", "csi.sock"), Registration: dir})
	if err == nil || !strings.Contains(err.Error(), "csi.sock") {
		t.Errorf("Serve() = %v, want an error that names the socket", err)
	}
}

func TestVolumeIDIsNoPath(t *testing.T) {
	driver := newDriver(t)
	for _, id := range []string{"", "..", ".", "a/b", "../one"} {
		if _, err := driver.DeleteVolume(t.Context(),
			&csi.DeleteVolumeRequest{VolumeId: id}); status.Code(err) != codes.InvalidArgument {
			t.Errorf("DeleteVolume(%q) = %v, want InvalidArgument", id, err)
		}
	}
	if _, err := os.Stat(filepath.Join(driver.config.Dir, VolumesDir)); err != nil {
		t.Errorf("the directory of volumes is gone: %v", err)
	}
}

func TestMountedVolumeIsFound(t *testing.T) {
	mounts := []byte("29 1 8:1 / / rw - ext4 /dev/sda rw\n41 29 8:1 /srv/volumes/one /pods/x/mount rw - ext4 /dev/sda rw\n")
	for volume, want := range map[string]bool{"volumes/one": true, "volumes/on": false, "volumes/two": false} {
		if got := mounted(mounts, volume); got != want {
			t.Errorf("mounted(%s) = %v, want %v", volume, got, want)
		}
	}
}
