package main

import (
	"context"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"

	"github.com/exeunt-io/exeunt/pkg/csimock"
)

// parsed returns the configuration of the arguments.
func parsed(t *testing.T, args ...string) csimock.Config {
	t.Helper()
	var f flags
	command := newCommand()
	command.ResetFlags()
	f.register(command)
	if err := command.ParseFlags(append(args, "--endpoint=csi.sock")); err != nil {
		t.Fatal(err)
	}
	config, err := f.parse()
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func TestFlagsSetConfiguration(t *testing.T) {
	faults := filepath.Join(t.TempDir(), "faults.yaml")
	if err := os.WriteFile(faults, []byte("[{method: Probe, code: Internal}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	health := filepath.Join(t.TempDir(), "health.yaml")
	if err := os.WriteFile(health, []byte("[{volume: one, status: DEGRADED, reason: Slow}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := parsed(t, "--driver-name=example.com", "--state-file=s", "--call-log=c", "--volumes=3", "--capacity=5Gi",
		"--node-id=n",
		"--other-nodes=a,b", "--max-volumes-per-node=7", "--mutable-parameters=tier", "--faults="+faults, "--health="+health,
		"--with=topology", "--without=snapshots,clones", "--without=list",
		"--topology=region=r,zone=a", "--topology=region=r,zone=b")
	want := csimock.Config{
		Name: "example.com", StateFile: "s", CallLog: "c", Volumes: 3, Capacity: 5 << 30, NodeID: "n",
		OtherNodes:        []string{"a", "b"},
		MaxVolumesPerNode: 7, MutableParameters: []string{"tier"},
		Faults: []csimock.Fault{{Method: "Probe", Code: codes.Internal}},
		Health: []csimock.HealthEntry{{Volume: "one", Condition: csimock.Condition{Status: "DEGRADED",
			Reason: "Slow"}}},
		Capabilities: csimock.AllCapabilities().Without(csimock.Publish, csimock.SnapshotTopology, csimock.Snapshots,
			csimock.Clones, csimock.List),
		Topologies: []map[string]string{{"region": "r", "zone": "a"}, {"region": "r", "zone": "b"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
}

func TestDefaultsOfFlags(t *testing.T) {
	got := parsed(t)
	if got.Capacity != csimock.DefaultCapacity || got.Name != csimock.DefaultName || got.NodeID != csimock.DefaultNodeID {
		t.Errorf("defaults: %+v", got)
	}
	if !maps.Equal(got.Capabilities, csimock.DefaultCapabilities()) {
		t.Errorf("default capabilities: %v", slices.Sorted(maps.Keys(got.Capabilities)))
	}
}

func TestCommandLineIsRefused(t *testing.T) {
	directory := t.TempDir()
	corrupt := filepath.Join(directory, "state.json")
	if err := os.WriteFile(corrupt, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	socket := "--endpoint=" + filepath.Join(directory, "csi.sock")
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no endpoint":                 {nil, "--endpoint is required"},
		"typo in a flag":              {[]string{socket, "--driver-nam=x"}, "there is no flag --driver-nam; csimock --help lists all"},
		"argument":                    {[]string{socket, "serve"}, `unknown command "serve"`},
		"unknown capability off":      {[]string{socket, "--without=clone"}, `read --without: unknown capability "clone", known are create-delete`},
		"unknown capability on":       {[]string{socket, "--with=fly"}, `read --with: unknown capability "fly"`},
		"capacity is no number":       {[]string{socket, "--capacity=much"}, `read --capacity "much"`},
		"zero capacity":               {[]string{socket, "--capacity=0"}, "greater than zero"},
		"topology without value":      {[]string{socket, "--with=topology", "--topology=zone"}, "must be KEY=VALUE"},
		"topology without capability": {[]string{socket, "--topology=zone=a"}, "the capability topology is off"},
		"missing faults file":         {[]string{socket, "--faults=/nowhere"}, "read faults: open /nowhere"},
		"missing health file":         {[]string{socket, "--health=/nowhere"}, "read health: open /nowhere"},
		"corrupt state file":          {[]string{socket, "--state-file=" + corrupt}, corrupt},
		"invalid name":                {[]string{socket, "--driver-name=a b"}, `driver name "a b"`},
	} {
		t.Run(name, func(t *testing.T) {
			command := newCommand()
			command.SetArgs(tc.args)
			command.SetOut(io.Discard)
			err := command.ExecuteContext(t.Context())
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the error is %v, want %q", err, tc.want)
			}
		})
	}
}

// brokenPipe is an output without a reader.
type brokenPipe struct{}

// Write fails.
func (brokenPipe) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestDriverStopsWithoutOutput(t *testing.T) {
	command := newCommand()
	command.SetArgs([]string{"--endpoint=" + filepath.Join(t.TempDir(), "csi.sock")})
	command.SetOut(brokenPipe{})
	if err := command.ExecuteContext(context.Background()); err == nil {
		t.Error("the driver serves without output")
	}
}
