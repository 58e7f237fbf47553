package hostpath_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller"

	"github.com/exeunt-io/exeunt/examples/hostpath-provisioner/hostpath"
)

func options() controller.ProvisionOptions {
	return controller.ProvisionOptions{
		PVName:       "pvc-1",
		StorageClass: &storagev1.StorageClass{ReclaimPolicy: ptr.To(v1.PersistentVolumeReclaimDelete)},
		PVC:          &v1.PersistentVolumeClaim{},
	}
}

func TestProvisionIsIdempotentByName(t *testing.T) {
	p := &hostpath.Provisioner{BaseDir: t.TempDir()}
	for range 2 {
		volume, state, err := p.Provision(t.Context(), options())
		if err != nil || state != controller.ProvisioningFinished {
			t.Fatalf("state %s, error %v", state, err)
		}
		if path := volume.Spec.HostPath.Path; path != filepath.Join(p.BaseDir, "pvc-1") {
			t.Errorf("path = %s", path)
		}
	}
	if entries, err := os.ReadDir(p.BaseDir); err != nil || len(entries) != 1 {
		t.Errorf("%d directories, %v; want one", len(entries), err)
	}
}

func TestPodsOfAllUsersMayWrite(t *testing.T) {
	p := &hostpath.Provisioner{BaseDir: t.TempDir()}
	volume, _, err := p.Provision(t.Context(), options())
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(volume.Spec.HostPath.Path)
	if err != nil || info.Mode().Perm() != 0o777 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestDeleteIsIdempotent(t *testing.T) {
	p := &hostpath.Provisioner{BaseDir: t.TempDir()}
	volume, _, err := p.Provision(t.Context(), options())
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := p.Delete(t.Context(), volume); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(volume.Spec.HostPath.Path); !os.IsNotExist(err) {
		t.Errorf("the directory still exists: %v", err)
	}
}

func TestOtherDirectoriesAreLeftAlone(t *testing.T) {
	p := &hostpath.Provisioner{BaseDir: filepath.Join(t.TempDir(), "base")}
	for name, path := range map[string]string{
		"above": filepath.Dir(p.BaseDir), "base": p.BaseDir, "beside": p.BaseDir + "-other",
		"below":          filepath.Join(p.BaseDir, "a", "b"),
		"parent of base": p.BaseDir + "/..", "base by dots": p.BaseDir + "/a/..", "relative": "pvc-1",
	} {
		volume := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "volume"}}
		volume.Spec.HostPath = &v1.HostPathVolumeSource{Path: path}
		var ignored *controller.IgnoredError
		if err := p.Delete(t.Context(), volume); !errors.As(err, &ignored) {
			t.Errorf("%s: Delete(%s) = %v, want it ignored", name, path, err)
		}
	}
	var ignored *controller.IgnoredError
	if err := p.Delete(t.Context(), &v1.PersistentVolume{}); !errors.As(err, &ignored) {
		t.Errorf("a volume without a host path: %v", err)
	}
}

func TestSelectorIsRefused(t *testing.T) {
	p := &hostpath.Provisioner{BaseDir: t.TempDir()}
	refused := options()
	refused.PVC.Spec.Selector = &metav1.LabelSelector{}
	if _, state, err := p.Provision(t.Context(), refused); err == nil || state != controller.ProvisioningFinished {
		t.Errorf("state %s, error %v", state, err)
	}
}

func TestExampleHasFewerThan150Lines(t *testing.T) {
	lines := 0
	for _, file := range []string{"hostpath.go", filepath.Join("..", "main.go")} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines += bytes.Count(text, []byte("\n"))
	}
	if lines >= 150 {
		t.Errorf("%d lines", lines)
	}
}
