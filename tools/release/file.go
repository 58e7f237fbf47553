package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// file is a file in an archive.
type file struct {
	name    string // with slashes, relative
	mode    fs.FileMode
	content []byte
	link    string // what a symbolic link leads to
}

// readProgram returns the program of a platform.
func (r release) readProgram(p platform, program string) (file, error) {
	name := p.executable(program)
	content, err := os.ReadFile(filepath.Join(r.programs, p.String(), name))
	if err != nil {
		return file{}, fmt.Errorf("read program: %w", err)
	}
	return file{name: name, mode: 0o755, content: content}, nil
}

// tarFiles writes files of root, all with the same time.
func tarFiles(to io.Writer, files []file, at time.Time) error {
	archive := tar.NewWriter(to)
	for _, f := range files {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: int64(f.mode.Perm()), Size: int64(len(f.content)),
			ModTime: at, Format: tar.FormatPAX}
		if f.link != "" {
			header.Typeflag, header.Linkname = tar.TypeSymlink, f.link
		}
		if err := archive.WriteHeader(header); err != nil {
			return fmt.Errorf("write %s: %w", f.name, err)
		}
		if _, err := archive.Write(f.content); err != nil {
			return fmt.Errorf("write %s: %w", f.name, err)
		}
	}
	if err := archive.Close(); err != nil {
		return fmt.Errorf("end archive: %w", err)
	}
	return nil
}

// gzipFiles returns a compressed tar archive.
func gzipFiles(files []file, at time.Time) ([]byte, error) {
	var buffer bytes.Buffer
	compressed := gzip.NewWriter(&buffer)
	if err := tarFiles(compressed, files, at); err != nil {
		return nil, err
	}
	if err := compressed.Close(); err != nil {
		return nil, fmt.Errorf("end archive: %w", err)
	}
	return buffer.Bytes(), nil
}

// zipFiles returns a zip archive.
func zipFiles(files []file, at time.Time) ([]byte, error) {
	var buffer bytes.Buffer
	archive := zip.NewWriter(&buffer)
	for _, f := range files {
		header := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: at}
		header.SetMode(f.mode)
		to, err := archive.CreateHeader(header)
		if err == nil {
			_, err = to.Write(f.content)
		}
		if err != nil {
			return nil, fmt.Errorf("write %s: %w", f.name, err)
		}
	}
	if err := archive.Close(); err != nil {
		return nil, fmt.Errorf("end archive: %w", err)
	}
	return buffer.Bytes(), nil
}

// write writes a file of the release and says so.
func (r release) write(name string, content []byte, log io.Writer) error {
	if err := os.WriteFile(filepath.Join(r.out, name), content, 0o644); err != nil {
		return fmt.Errorf("write release: %w", err)
	}
	_, err := fmt.Fprintf(log, "%s (%.1f MB)\n", filepath.Join(r.out, name), float64(len(content))/1e6)
	return err
}

// filesBelow returns the files below a directory in the order of their names.
func filesBelow(dir string) ([]file, error) {
	var files []file
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		files = append(files, file{name: filepath.ToSlash(name), mode: 0o644, content: content})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read directory: %w", err)
	}
	return files, nil
}
