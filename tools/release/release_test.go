package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"sigs.k8s.io/yaml"
)

// greeting is a program for tests.
const greeting = `package main

import "fmt"

func main() { fmt.Println("hello") }
`

// build compiles the program for tests under several names, and returns the directory.
func build(t *testing.T, platforms []platform, names ...string) string {
	t.Helper()
	source, to := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{"main.go": greeting, "go.mod": "module example.com/greeting\n\ngo 1.26\n"} {
		if err := os.WriteFile(filepath.Join(source, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range platforms {
		for _, name := range names {
			command := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o",
				filepath.Join(to, p.String(), p.executable(name)), ".")
			command.Dir = source
			command.Env = append(os.Environ(), "GOOS="+p.os, "GOARCH="+p.arch, "CGO_ENABLED=0", "GOFLAGS=")
			if text, err := command.CombinedOutput(); err != nil {
				t.Fatalf("build: %v\n%s", err, text)
			}
		}
	}
	return to
}

// released runs the program, and returns the directory of the results.
func released(t *testing.T, args ...string) string {
	t.Helper()
	out := t.TempDir()
	part := []string{args[0], "--out=" + out, "--version=v1.2.3", "--revision=abc", "--date=2026-01-02T03:04:05+01:00"}
	if err := run(append(part, args[1:]...), io.Discard); err != nil {
		t.Fatal(err)
	}
	return out
}

var linux = []platform{{"linux", "amd64"}, {"linux", "arm64"}}

func TestImages(t *testing.T) {
	programs := build(t, linux, "pv-controller", "provisioner", "kube-apiserver", "exeunt")
	args := []string{"images", "--programs=" + programs, "registry.example.com/exeunt", "pv-controller", "provisioner",
		"kube-apiserver"}
	out, again := released(t, args...), released(t, args...)
	for program, files := range map[string][]string{
		"pv-controller": {"pv-controller", "usr/share/sbom/pv-controller.cdx.json"},
		// Manifests that name the command, such as those of TopoLVM, name that of csi-provisioner.
		"provisioner": {"provisioner", "usr/share/sbom/provisioner.cdx.json", "exeunt", "usr/share/sbom/exeunt.cdx.json",
			"csi-provisioner"},
		// The manifest that kubeadm writes calls it by its name alone.
		"kube-apiserver": {"usr/local/bin/kube-apiserver", "usr/share/sbom/kube-apiserver.cdx.json"},
	} {
		checkSame(t, filepath.Join(out, program+".image.tar"), filepath.Join(again, program+".image.tar"))
		descriptor, images := openImages(t, filepath.Join(out, program+".image.tar"))
		if name := descriptor.Annotations["io.containerd.image.name"]; name != "registry.example.com/exeunt/"+program+
			":v1.2.3" {
			t.Errorf("the image is called %q", name)
		}
		for _, p := range linux {
			image, found := images[p]
			if !found {
				t.Fatalf("%s has no image for %s", program, p)
			}
			checkConfig(t, image, program, "/"+files[0])
			checkLayer(t, image, p, program, files)
		}
	}
}

// checkSame checks that two files have the same content.
func checkSame(t *testing.T, one, other string) {
	t.Helper()
	first, err := os.ReadFile(one)
	second, also := os.ReadFile(other)
	if err := errors.Join(err, also); err != nil || !bytes.Equal(first, second) {
		t.Errorf("%s and %s differ, %v", one, other, err)
	}
}

// openImages unpacks an archive and returns its image, and those of its platforms.
func openImages(t *testing.T, archive string) (v1.Descriptor, map[platform]v1.Image) {
	t.Helper()
	dir := t.TempDir()
	content, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = content.Close() }()
	for name, text := range untar(t, content) {
		to := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o700), os.WriteFile(to, text, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	top, err := index.IndexManifest()
	if err != nil || len(top.Manifests) != 1 {
		t.Fatalf("the archive has the images %+v, %v", top, err)
	}
	all, err := index.ImageIndex(top.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := all.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	images := map[platform]v1.Image{}
	for _, descriptor := range manifest.Manifests {
		image, err := all.Image(descriptor.Digest)
		if err != nil {
			t.Fatal(err)
		}
		images[platform{descriptor.Platform.OS, descriptor.Platform.Architecture}] = image
	}
	return top.Manifests[0], images
}

// checkConfig checks how the image of a program starts and what it says of itself.
func checkConfig(t *testing.T, image v1.Image, program, start string) {
	t.Helper()
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	user := "65532:65532"
	switch program {
	case "provisioner": // in the pod of a driver, whose socket is often the root user's
		user = ""
	case "kube-apiserver": // whose keys are the root user's
		user = ""
		if path := strings.Join(config.Config.Env, " "); !strings.Contains(path, ":"+filepath.Dir(start)+":") {
			t.Errorf("%s is not on the path: %s", start, path)
		}
	}
	if config.Config.User != user || fmt.Sprint(config.Config.Entrypoint) != "["+start+"]" {
		t.Errorf("%s runs as %q: %v", program, config.Config.User, config.Config.Entrypoint)
	}
	for label, want := range map[string]string{"title": program, "version": "v1.2.3", "revision": "abc",
		"created": "2026-01-02T02:04:05Z"} {
		if got := config.Config.Labels["org.opencontainers.image."+label]; got != want {
			t.Errorf("label %s of %s is %q, want %q", label, program, got, want)
		}
	}
}

// checkLayer checks the files of an image: the program is static and runs, the modules are known.
func checkLayer(t *testing.T, image v1.Image, p platform, program string, names []string) {
	t.Helper()
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers, %v", len(layers), err)
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	files := untar(t, content)
	if len(files) != len(names) {
		t.Errorf("%s has %d files, want %v", program, len(files), names)
	}
	for _, name := range names {
		if strings.HasSuffix(name, ".json") {
			var bill struct{ Components []struct{ Name string } }
			if err := json.Unmarshal(files[name], &bill); err != nil || len(bill.Components) == 0 ||
				bill.Components[0].Name != "std" {
				t.Errorf("%s says %s, %v", name, files[name], err)
			}
		}
	}
	checkProgram(t, files[names[0]], p)
	if last := names[len(names)-1]; last == "csi-provisioner" {
		checkProgram(t, files[last], p)
	}
}

// checkProgram checks that a program needs no library, and runs on this machine, if it is for it.
func checkProgram(t *testing.T, program []byte, p platform) {
	t.Helper()
	parsed, err := elf.NewFile(bytes.NewReader(program))
	if err != nil {
		t.Fatal(err)
	}
	if machine := map[string]elf.Machine{"amd64": elf.EM_X86_64,
		"arm64": elf.EM_AARCH64}[p.arch]; parsed.Machine != machine {
		t.Errorf("the program for %s is for %s", p, parsed.Machine)
	}
	for _, part := range parsed.Progs {
		if part.Type == elf.PT_INTERP {
			t.Errorf("the program for %s needs a dynamic linker", p)
		}
	}
	if p.os != runtime.GOOS || p.arch != runtime.GOARCH {
		return
	}
	file := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(file, program, 0o700); err != nil {
		t.Fatal(err)
	}
	if text, err := exec.CommandContext(t.Context(), file).CombinedOutput(); err != nil || string(text) != "hello\n" {
		t.Errorf("the program says %q, %v", text, err)
	}
}

// untar returns the files of a tar archive by name.
func untar(t *testing.T, from io.Reader) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for archive := tar.NewReader(from); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[header.Name], err = io.ReadAll(archive); err != nil {
			t.Fatal(err)
		}
		if header.Typeflag == tar.TypeSymlink {
			files[header.Name] = files[header.Linkname] // which stands before
		}
	}
}

func TestCLI(t *testing.T) {
	platforms := []platform{{"linux", "amd64"}, {"windows", "arm64"}}
	programs, dir := build(t, platforms, "exeunt"), t.TempDir()
	license, changelog := filepath.Join(dir, "LICENSE"), filepath.Join(dir, "CHANGELOG.md")
	for name, text := range map[string]string{license: "the license",
		changelog: "# Changelog\n\n## [Unreleased]\n\nlater\n\n## [1.2.3] - 2026-01-02\n\n- this\n\n## [1.2.2]\n\n- that\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"cli", "--programs=" + programs, "--platforms=linux/amd64,windows/arm64", license, changelog}
	out, again := released(t, args...), released(t, args...)
	names := []string{"kubectl-exeunt_v1.2.3_linux_amd64.tar.gz", "kubectl-exeunt_v1.2.3_windows_arm64.zip", "SHA256SUMS",
		"exeunt.yaml", "notes.md"}
	for _, name := range names {
		checkSame(t, filepath.Join(out, name), filepath.Join(again, name))
	}
	if notes := read(t, out, "notes.md"); notes != "- this\n" {
		t.Errorf("the notes are %q", notes)
	}
	sums := read(t, out, "SHA256SUMS")
	for _, name := range names[:2] {
		if line := fmt.Sprintf("%x  %s\n", sha256.Sum256([]byte(read(t, out, name))), name); !strings.Contains(sums, line) {
			t.Errorf("the checksums lack %s:\n%s", line, sums)
		}
	}
	compressed, err := gzip.NewReader(strings.NewReader(read(t, out, names[0])))
	if err != nil {
		t.Fatal(err)
	}
	files := untar(t, compressed)
	if checkProgram(t, files["kubectl-exeunt"], platforms[0]); string(files["LICENSE"]) != "the license" {
		t.Errorf("the license is %q", files["LICENSE"])
	}
	packed, err := zip.OpenReader(filepath.Join(out, names[1]))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = packed.Close() }()
	if name := packed.File[0].Name; name != "kubectl-exeunt.exe" {
		t.Errorf("the archive for Windows begins with %q", name)
	}
	checkKrew(t, read(t, out, "exeunt.yaml"), sums)
	checkAccepted(t, out, platforms, names[:2])
}

// read returns the text of a file.
func read(t *testing.T, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// checkKrew checks what krew's index asks of a manifest.
func checkKrew(t *testing.T, text, sums string) {
	t.Helper()
	var p krewPlugin
	if err := yaml.UnmarshalStrict([]byte(text), &p); err != nil {
		t.Fatal(err)
	}
	if p.Metadata.Name != "exeunt" || p.Spec.Version != "v1.2.3" || p.Spec.ShortDescription == "" ||
		len(p.Spec.Platforms) != 2 {
		t.Errorf("the manifest is\n%s", text)
	}
	for _, platform := range p.Spec.Platforms {
		name := platform.URI[strings.LastIndex(platform.URI, "/")+1:]
		if !strings.Contains(sums, platform.SHA256+"  "+name) {
			t.Errorf("the manifest has %s of %s, the checksums are\n%s", platform.SHA256, name, sums)
		}
	}
}

func TestBadInputIsRefusedWithOneSentence(t *testing.T) {
	given := []string{"images", "--version=v1", "--date=2026-01-02T03:04:05Z", "--out=" + t.TempDir()}
	for want, args := range map[string]string{
		"images or cli": "", "--version is missing": "images", `--date=""`: "images --version=v1",
		`"amd64" is no platform`: "more --platforms=amd64",
		"name the registry":      "more", "read program": "more --programs=nowhere registry pv-controller",
	} {
		fields := strings.Fields(args)
		if len(fields) > 0 && fields[0] == "more" {
			fields = append(given[:len(given):len(given)], fields[1:]...)
		}
		if err := run(fields, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", args, err, want)
		}
	}
}

func TestNotes(t *testing.T) {
	const changelog = "# Changelog\n\n## [Unreleased]\n\n- next\n\n## [1.0.0] - today\n\n- first\n"
	for version, want := range map[string]string{"v1.0.0": "- first\n", "v1.0.0+3.gabc": "- next\n", "v2.0.0": ""} {
		if got, err := notesOf(changelog, version); got != want || (err == nil) != (want != "") {
			t.Errorf("notes of %s are %q, %v", version, got, err)
		}
	}
}

// checkAccepted runs krew's own validator on the manifest, and krew's installation of each
// archive.
func checkAccepted(t *testing.T, out string, platforms []platform, archives []string) {
	t.Helper()
	programs, manifest := buildKrew(t), filepath.Join(out, tool+".yaml")
	validate := exec.CommandContext(t.Context(), filepath.Join(programs, "validate-krew-manifest"), "-manifest", manifest,
		"-skip-install")
	if text, err := validate.CombinedOutput(); err != nil {
		t.Errorf("krew refuses the manifest: %v\n%s", err, text)
	}
	for i, p := range platforms {
		root := t.TempDir()
		install := exec.CommandContext(t.Context(), filepath.Join(programs, "krew"), "install", "--manifest", manifest,
			"--archive", filepath.Join(out, archives[i]))
		install.Env = append(os.Environ(), "KREW_ROOT="+root, "KREW_OS="+p.os, "KREW_ARCH="+p.arch, "KREW_NO_UPGRADE_CHECK=1")
		if text, err := install.CombinedOutput(); err != nil {
			t.Errorf("krew does not install %s: %v\n%s", archives[i], err, text)
		}
		for _, file := range []string{p.executable(plugin), "LICENSE"} {
			if _, err := os.Stat(filepath.Join(root, "store", tool, "v1.2.3", file)); err != nil {
				t.Errorf("krew did not unpack %s: %v", file, err)
			}
		}
	}
}

// buildKrew compiles krew and its validator, and returns their directory.
func buildKrew(t *testing.T) string {
	t.Helper()
	to := t.TempDir()
	command := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-o", to+"/",
		"sigs.k8s.io/krew/cmd/krew", "sigs.k8s.io/krew/cmd/validate-krew-manifest")
	command.Dir, command.Env = filepath.Join("..", "krew"), append(os.Environ(), "CGO_ENABLED=0")
	if text, err := command.CombinedOutput(); err != nil {
		t.Fatalf("build krew: %v\n%s", err, text)
	}
	return to
}
