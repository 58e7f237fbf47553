package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os/exec"
	"path/filepath"
	"strings"
)

// startEtcd starts etcd as a process of its own.
func (c *ControlPlane) startEtcd(ctx context.Context) (err error) {
	args := []string{"etcd", "--data-dir=" + filepath.Join(c.config.Dir, "etcd")}
	if !c.config.Durable {
		args = append(args, "--in-memory-speed")
	}
	c.Etcd, err = Start(ctx, Program{
		Name: "etcd", Path: c.program, Args: args, LogFile: filepath.Join(c.config.Dir, "etcd.log"),
		ReadyLine: "controlplane: etcd ",
	})
	return err
}

// Stored is an object as the API server stores it in etcd.
type Stored struct {
	// Key is such as "/registry/persistentvolumes/name".
	Key   string
	Value []byte
}

// Store writes objects into a separate etcd past the API server, which takes them as its own.
func (c *ControlPlane) Store(ctx context.Context, objects iter.Seq2[Stored, error]) error {
	if c.Etcd == nil {
		return errors.New("store objects: etcd is not separate")
	}
	reader, writer := io.Pipe()
	defer reader.Close() // ends the other goroutine if the program ends early
	go func() { writer.CloseWithError(encode(writer, objects)) }()
	var output strings.Builder
	put := exec.CommandContext(ctx, c.program, "put", "--etcd="+c.Etcd.ready)
	put.Stdin, put.Stdout, put.Stderr = reader, &output, &output
	if err := put.Run(); err != nil {
		return fmt.Errorf("store objects: %w: %s", err, strings.TrimSpace(output.String()))
	}
	return nil
}

// encode writes the objects as JSON.
func encode(writer io.Writer, objects iter.Seq2[Stored, error]) error {
	encoder := json.NewEncoder(writer)
	for object, err := range objects {
		if err == nil {
			err = encoder.Encode(object)
		}
		if err != nil {
			return fmt.Errorf("encode objects: %w", err)
		}
	}
	return nil
}

// Stop ends the API server before etcd, see Process.Stop.
func (c *ControlPlane) Stop(ctx context.Context) error {
	if c.Etcd == nil {
		return c.Process.Stop(ctx)
	}
	return errors.Join(c.Process.Stop(ctx), c.Etcd.Stop(ctx))
}

// Kill ends the API server and etcd as a crash does.
func (c *ControlPlane) Kill() error {
	var errs []error
	for _, process := range []*Process{c.Process, c.Etcd} {
		if process != nil {
			errs = append(errs, process.Kill())
		}
	}
	return errors.Join(errs...)
}
