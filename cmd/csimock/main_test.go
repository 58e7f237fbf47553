package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/onsi/gomega"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/exeunt-io/exeunt/pkg/csimock"
)

// asProgram is the environment variable with which the test binary runs the program.
const asProgram = "CSIMOCK_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// program is the driver in a process of its own.
type program struct {
	*exec.Cmd
	csi.ControllerClient
}

// launch starts the program on a socket in the directory, and waits until it serves.
func launch(t *testing.T, directory string, args ...string) program {
	t.Helper()
	socket := filepath.Join(directory, "csi.sock")
	command := exec.CommandContext(t.Context(), os.Args[0], append(args, "--endpoint", socket)...)
	command.Env = append(os.Environ(), asProgram+"=1")
	command.Stderr = os.Stderr
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(output).ReadString('\n')
	if want := "csimock: driver " + csimock.DefaultName + " serving on " + socket + "\n"; line != want {
		t.Fatalf("output %q (%v), want %q", line, err, want)
	}
	connection, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	return program{command, csi.NewControllerClient(connection)}
}

// end sends a signal and expects that the program exits with 0.
func (p program) end(t *testing.T, signal os.Signal) {
	t.Helper()
	if err := p.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(); err != nil {
		t.Errorf("the program ended with %v", err)
	}
}

// oneVolume creates a volume.
var oneVolume = &csi.CreateVolumeRequest{Name: "one", VolumeCapabilities: []*csi.VolumeCapability{{
	AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
	AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
}}}

func TestProgramKeepsVolumesAcrossRestart(t *testing.T) {
	directory := t.TempDir()
	args := []string{"--state-file", filepath.Join(directory, "state.json"), "--call-log",
		filepath.Join(directory, "calls.jsonl")}
	first := launch(t, directory, args...)
	created, err := first.CreateVolume(t.Context(), oneVolume)
	if err != nil {
		t.Fatal(err)
	}
	first.end(t, syscall.SIGTERM)
	second := launch(t, directory, args...)
	found, err := second.CreateVolume(t.Context(), oneVolume)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := found.GetVolume().GetVolumeId(), created.GetVolume().GetVolumeId(); got != want {
		t.Errorf("after the restart the volume is %s, want %s", got, want)
	}
	second.end(t, os.Interrupt)
	calls, err := csimock.ReadCalls(filepath.Join(directory, "calls.jsonl"))
	if err != nil || len(calls) != 2 {
		t.Errorf("the call log has %v (%v), want 2 calls", calls, err)
	}
}

func TestProgramStopsDuringHangingCall(t *testing.T) {
	directory := t.TempDir()
	faults, state := filepath.Join(directory, "faults.yaml"), filepath.Join(directory, "state.json")
	if err := os.WriteFile(faults, []byte("- {method: CreateVolume, hang: true, after: true}"), 0o600); err != nil {
		t.Fatal(err)
	}
	driver := launch(t, directory, "--faults", faults, "--state-file", state)
	ended := make(chan error)
	go func() {
		_, err := driver.CreateVolume(t.Context(), oneVolume)
		ended <- err
	}()
	gomega.NewWithT(t).Eventually(func() ([]byte, error) { return os.ReadFile(state) }).
		Should(gomega.ContainSubstring(`"one"`))
	driver.end(t, syscall.SIGTERM)
	if err := <-ended; status.Code(err) != codes.Unavailable {
		t.Errorf("the call ended with %v, want Unavailable", err)
	}
}
