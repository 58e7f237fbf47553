package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	// nobody is user and group of the processes, as in the manifests.
	nobody = "65532:65532"
	// materials is where scanners look for bills of materials.
	materials = "usr/share/sbom"
)

// apiserver takes the place of upstream's program in the manifest that kubeadm writes.
const apiserver = "kube-apiserver"

// userOf returns the user of the image of a program. That of provisioner names none, as that of csi-provisioner: it takes
// its place in pods of drivers whose socket is often the root user's, and which say themselves if another user is to run.
// That of kube-apiserver names none, as upstream's: the keys below /etc/kubernetes/pki are the root user's.
func userOf(program string) string {
	switch program {
	case apiserver, "provisioner", "csi-provisioner": // which the tests on a real node run
		return ""
	}
	return nobody
}

// directoryOf returns where a program is in its image. The manifest that kubeadm writes calls kube-apiserver by its name
// alone, so it is where upstream's image has it, on the path.
func directoryOf(program string) string {
	if program == apiserver {
		return "usr/local/bin"
	}
	return ""
}

// environmentOf returns the environment of a program.
func environmentOf(program string) []string {
	if program == apiserver {
		return []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	}
	return nil
}

// helpers are the programs that an image has beside its own: exeunt needs the socket of the
// driver, which only the pod of the provisioner has.
func helpers(program string) []string {
	if program == "provisioner" {
		return []string{"exeunt"}
	}
	return nil
}

// writeImages writes an archive for each program. The first argument is the registry.
func writeImages(r release, args []string, log io.Writer) error {
	if len(args) < 2 {
		return errors.New("images: name the registry and the programs")
	}
	for _, program := range args[1:] {
		archive, err := r.imageArchive(path.Join(args[0], program), program)
		if err != nil {
			return fmt.Errorf("image of %s: %w", program, err)
		}
		if err := r.write(program+".image.tar", archive, log); err != nil {
			return err
		}
	}
	return nil
}

// imageArchive returns a directory in the OCI image layout as a tar archive, with one image for
// all platforms.
func (r release) imageArchive(name, program string) ([]byte, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range r.platforms {
		image, err := r.image(p, program)
		if err != nil {
			return nil, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: p.os, Architecture: p.arch}}})
	}
	dir, err := os.MkdirTemp("", "image-")
	if err != nil {
		return nil, fmt.Errorf("create directory: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	to, err := layout.Write(dir, empty.Index)
	if err != nil {
		return nil, fmt.Errorf("write image: %w", err)
	}
	names := map[string]string{"org.opencontainers.image.ref.name": r.tag, "io.containerd.image.name": name + ":" + r.tag}
	if err := to.AppendIndex(index, layout.WithAnnotations(names)); err != nil {
		return nil, fmt.Errorf("write image: %w", err)
	}
	files, err := filesBelow(dir)
	if err != nil {
		return nil, err
	}
	var archive bytes.Buffer
	err = tarFiles(&archive, files, r.date)
	return archive.Bytes(), err
}

// image returns the image of a program for one platform: one layer, nothing but programs and
// what they were built from.
func (r release) image(p platform, program string) (v1.Image, error) {
	files, err := r.filesOf(p, program)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		var content bytes.Buffer
		err := tarFiles(&content, files, r.date)
		return io.NopCloser(&content), err
	}, tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
	if err != nil {
		return nil, fmt.Errorf("build layer: %w", err)
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	created := v1.Time{Time: r.date}
	image, err = mutate.Append(image, mutate.Addendum{Layer: layer,
		History: v1.History{Created: created, CreatedBy: "make images"}})
	if err != nil {
		return nil, fmt.Errorf("add layer: %w", err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("read config: %w", err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = p.os, p.arch, created
	config.Config = v1.Config{User: userOf(program), Env: environmentOf(program), WorkingDir: "/",
		Entrypoint: []string{path.Join("/", directoryOf(program), program)}, Labels: r.labels(program)}
	if image, err = mutate.ConfigFile(image, config); err != nil {
		return nil, fmt.Errorf("write config: %w", err)
	}
	return image, nil
}

// filesOf returns the files of an image.
func (r release) filesOf(p platform, program string) ([]file, error) {
	var files []file
	for _, name := range append([]string{program}, helpers(program)...) {
		f, err := r.readProgram(p, name)
		if err != nil {
			return nil, err
		}
		bill, err := r.billOfMaterials(name, f.content)
		if err != nil {
			return nil, err
		}
		f.name = path.Join(directoryOf(name), f.name)
		files = append(files, f, file{name: path.Join(materials, name+".cdx.json"), mode: 0o644, content: bill})
	}
	if program == "provisioner" { // manifests may name the command of the image that this one replaces
		files = append(files, file{name: "csi-provisioner", mode: 0o777, link: program})
	}
	return files, nil
}

// labels describe an image, by the keys that the OCI defines.
func (r release) labels(program string) map[string]string {
	const prefix = "org.opencontainers.image."
	return map[string]string{
		prefix + "title":    program,
		prefix + "version":  r.version,
		prefix + "revision": r.revision,
		prefix + "created":  r.date.Format(time.RFC3339),
		prefix + "source":   r.source,
		prefix + "licenses": "Apache-2.0",
	}
}
