package manifests

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// descriptor points to content of an OCI image: a blob named after its digest.
type descriptor struct {
	Digest      string
	Annotations map[string]string
	Platform    struct{ OS, Architecture string }
}

// manifest is an image, or an index of images.
type manifest struct {
	Config            descriptor
	Layers, Manifests []descriptor
}

// imageConfig says how an image starts.
type imageConfig struct {
	Config struct {
		User       string
		Entrypoint []string
		Labels     map[string]string
	}
}

// TestBuiltImagesRun unpacks what make images wrote, as a container runtime does: each image has
// the name that the manifests use, is there for both architectures, and its programs run.
func TestBuiltImagesRun(t *testing.T) {
	for _, program := range []string{"pv-controller", "provisioner", "garbage-collector", "node-terminator", "alive-controller",
		"csimock", "exeunt"} {
		t.Run(program, func(t *testing.T) {
			blobs := unpacked(t, filepath.Join(binaries().Dir, "release", program+".image.tar"))
			index := parsed[manifest](t, blobs["index.json"])
			if len(index.Manifests) != 1 {
				t.Fatalf("the archive has %d images", len(index.Manifests))
			}
			if name, want := index.Manifests[0].Annotations["io.containerd.image.name"],
				"registry.invalid/exeunt/"+program+":"+loaded(t).Metadata.AppVersion; name != want {
				t.Errorf("the image is called %s, the manifests name %s", name, want)
			}
			platforms := map[string]bool{}
			for _, image := range parsed[manifest](t, blobs.of(index.Manifests[0])).Manifests {
				platforms[image.Platform.OS+"/"+image.Platform.Architecture] = true
				if image.Platform.OS == runtime.GOOS && image.Platform.Architecture == runtime.GOARCH {
					runImage(t, blobs, parsed[manifest](t, blobs.of(image)))
				}
			}
			if len(platforms) != 2 || !platforms["linux/amd64"] || !platforms["linux/arm64"] {
				t.Errorf("the image is for %v", platforms)
			}
		})
	}
}

// runImage unpacks the layers of an image and asks its program for the version.
func runImage(t *testing.T, blobs archive, image manifest) {
	t.Helper()
	config := parsed[imageConfig](t, blobs.of(image.Config)).Config
	want := "65532:65532"
	if config.Entrypoint[0] == "/provisioner" { // as the image that it replaces in pods that name no user
		want = ""
	}
	if config.User != want {
		t.Errorf("the image of %s runs as %q, want %q", config.Entrypoint[0], config.User, want)
	}
	root := t.TempDir()
	for _, layer := range image.Layers {
		content, err := gzip.NewReader(bytes.NewReader(blobs.of(layer)))
		if err != nil {
			t.Fatal(err)
		}
		for name, file := range untar(t, content) {
			to := filepath.Join(root, filepath.FromSlash(name))
			if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o700), os.WriteFile(to, file, 0o700)); err != nil {
				t.Fatal(err)
			}
		}
	}
	program := filepath.Join(root, filepath.FromSlash(config.Entrypoint[0]))
	how, says := "--version", config.Labels["org.opencontainers.image.version"]
	switch filepath.Base(program) {
	case "exeunt":
		how = "version"
	case "csimock": // has no version
		how, says = "--help", "--endpoint"
	}
	command := exec.CommandContext(t.Context(), program, how)
	command.Env = []string{}
	text, err := command.CombinedOutput()
	if err != nil || says == "" || !strings.Contains(string(text), says) {
		t.Errorf("%s %s says %q, %v; want %q", program, how, text, err, says)
	}
	bill := filepath.Join(root, "usr", "share", "sbom", filepath.Base(program)+".cdx.json")
	if text, err := os.ReadFile(bill); err != nil || !bytes.Contains(text, []byte("pkg:golang/k8s.io/client-go@")) &&
		filepath.Base(program) != "csimock" {
		t.Errorf("the bill of materials does not name client-go, %v", err)
	}
}

// archive has the files of an OCI image by name.
type archive map[string][]byte

// of returns what a descriptor points to.
func (a archive) of(d descriptor) []byte {
	kind, sum, _ := strings.Cut(d.Digest, ":")
	return a["blobs/"+kind+"/"+sum]
}

// unpacked returns the files of a tar archive.
func unpacked(t *testing.T, file string) archive {
	t.Helper()
	content, err := os.Open(file)
	if err != nil {
		t.Fatalf("%v: run make images", err)
	}
	defer func() { _ = content.Close() }()
	return untar(t, content)
}

// untar returns the files of a tar archive.
func untar(t *testing.T, from io.Reader) archive {
	t.Helper()
	files := archive{}
	for reader := tar.NewReader(from); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[header.Name], err = io.ReadAll(reader); err != nil {
			t.Fatal(err)
		}
	}
}

// parsed reads JSON.
func parsed[T any](t *testing.T, text []byte) T {
	t.Helper()
	var value T
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	return value
}
