package launcher

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// restartDelay is the time before an ended kubelet is started again.
	restartDelay = time.Second
	// startPatience bounds the wait for containerd, importPatience that for each image.
	startPatience, importPatience = time.Minute, time.Minute
)

// errContainerd: containerd ended, which it never does by itself.
var errContainerd = errors.New("containerd ended")

// Init is the first process of a node. It reads the configuration and returns when
// containerd has ended, when it could not start the node, or at the end of a trial.
func Init(input io.Reader) error {
	var config Config
	if err := json.NewDecoder(input).Decode(&config); err != nil {
		return fmt.Errorf("read configuration: %w", err)
	}
	if err := errors.Join(unix.Sethostname([]byte(config.Name)),
		os.Setenv("PATH", config.Programs+":"+os.Getenv("PATH"))); err != nil {
		return fmt.Errorf("prepare node: %w", err)
	}
	steps := []func() error{config.mount, configureLoopback, config.writeFiles, config.serveRelays, config.run}
	if config.Trial {
		steps = []func() error{config.mount, configureLoopback, config.mountOverlay}
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// serveRelays forwards the service address and the API server's address to the socket of
// the machine.
func (c Config) serveRelays() error {
	for _, address := range []string{serviceAddress + ":443", c.Server} {
		relay, err := listen("tcp", address, "unix", filepath.Join(c.Dir, socketName))
		if err != nil {
			return err
		}
		go relay.serve()
	}
	return nil
}

// run starts containerd, imports the images, and keeps kubelet running until containerd
// ends.
func (c Config) run() error {
	children := newReaper()
	containerd, err := children.start(c.command("containerd", "--config", c.file("containerd.toml")))
	if err != nil {
		return err
	}
	if err := c.importImages(children); err != nil {
		return err
	}
	for {
		kubelet, err := children.start(c.command("kubelet", c.kubeletFlags()...))
		if err != nil {
			return err
		}
		select {
		case status := <-containerd:
			return errors.Join(errContainerd, status)
		case status := <-kubelet:
			fmt.Fprintln(os.Stderr, "node: kubelet ended and is started again:", status)
		}
		if err := c.awaitRestart(containerd); err != nil {
			return err
		}
	}
}

// awaitRestart returns when kubelet is to be started again, or with an error when containerd ends.
func (c Config) awaitRestart(containerd <-chan error) error {
	for {
		select {
		case status := <-containerd:
			return errors.Join(errContainerd, status)
		case <-time.After(restartDelay):
		}
		if _, err := os.Stat(filepath.Join(c.Dir, KubeletHeld)); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
	}
}

// importImages imports all archives, once containerd answers.
func (c Config) importImages(children *reaper) error {
	deadline := time.Now().Add(startPatience)
	for {
		err := children.run(c.command("ctr", "--connect-timeout=1s", "version"), startPatience)
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("containerd did not answer within %s: %w", startPatience, err)
		}
		<-time.After(100 * time.Millisecond)
	}
	for _, archive := range c.Images {
		if err := children.run(c.command("ctr", "-n", "k8s.io", "images", "import", "--local", archive),
			importPatience); err != nil {
			return fmt.Errorf("import image %s: %w", archive, err)
		}
	}
	return nil
}

// command returns a program of the node, with its log in the node's directory.
func (c Config) command(program string, args ...string) *exec.Cmd {
	command := exec.Command(filepath.Join(c.Programs, program), args...)
	if log, err := os.OpenFile(filepath.Join(c.Dir, program+".log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY,
		0o600); err == nil {
		command.Stdout, command.Stderr = log, log
	}
	return command
}
