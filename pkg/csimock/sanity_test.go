package csimock_test

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/kubernetes-csi/csi-test/v5/pkg/sanity"
	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	"github.com/onsi/gomega"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"

	"github.com/exeunt-io/exeunt/pkg/csimock"
)

// sanitySocket is the environment variable with the socket of a driver: the test binary
// then runs csi-sanity only. Ginkgo runs a suite once per process, and never with -count.
const sanitySocket = "CSIMOCK_SANITY_SOCKET"

func TestMain(m *testing.M) {
	socket := os.Getenv(sanitySocket)
	if socket == "" {
		os.Exit(m.Run())
	}
	flag.Parse()
	if !runSanity(socket) {
		os.Exit(1)
	}
}

// The one pending spec is switched off in the source of csi-test itself.
// TestPagesSurviveChanges covers its case.
func TestSanity(t *testing.T) {
	directory := t.TempDir()
	socket, report := filepath.Join(directory, "csi.sock"), filepath.Join(directory, "report.json")
	server, err := csimock.Start(t.Context(), csimock.Config{
		Capabilities:      csimock.AllCapabilities(),
		MaxVolumesPerNode: 5,
		StateFile:         filepath.Join(directory, "state.json"),
		CallLog:           filepath.Join(directory, "calls.jsonl"),
	}, socket)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), os.Args[0], "-ginkgo.no-color", "-ginkgo.json-report="+report)
	command.Env = append(os.Environ(), sanitySocket+"="+socket)
	if output, err := command.CombinedOutput(); err != nil {
		t.Errorf("csi-sanity: %v\n%s", err, output)
	}
	got := countSpecs(t, report)
	t.Logf("specs of csi-sanity: %v", got)
	// A spec that is skipped is a capability that the driver lacks.
	if diff := cmp.Diff(map[string]int{"passed": 102, "pending": 1}, got); diff != "" {
		t.Errorf("specs of csi-sanity (-want +got):\n%s", diff)
	}
	if left := server.Volumes(); len(left) != 0 {
		t.Errorf("csi-sanity has left %d volumes behind", len(left))
	}
	if err := server.Stop(); err != nil {
		t.Error(err)
	}
}

// runSanity runs csi-sanity with all its optional tests, and reports whether all tests
// passed.
func runSanity(socket string) bool {
	config := sanity.NewTestConfig()
	config.TargetPath = filepath.Join(filepath.Dir(socket), "targets")
	config.StagingPath = filepath.Join(filepath.Dir(socket), "staging")
	config.TestNodeVolumeAttachLimit = true
	config.TestVolumeParameters = map[string]string{"tier": "gold"}
	config.TestSnapshotParameters = map[string]string{"keep": "7d"}
	config.TestVolumeMutableParameters = map[string]string{"iops": "3000"}
	specs := sanity.GinkgoTest(&config)
	connection, err := grpc.NewClient("unix:"+socket,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(sizeCaching{encoding.GetCodecV2("proto")})))
	if err != nil {
		panic(err)
	}
	// Without an address in the configuration, csi-sanity uses the connection
	// it is given. Its own way to connect misses the moment at times.
	specs.Conn = connection
	defer specs.Finalize()
	gomega.RegisterFailHandler(ginkgo.Fail)
	return ginkgo.RunSpecs(silent{}, "csi-sanity")
}

// sizeCaching caches the size in received messages as marshaling does in sent messages. The
// spec for the topology of a snapshot compares both with reflect.DeepEqual, which sees the
// cached sizes, and would fail for every driver with topology.
type sizeCaching struct{ encoding.CodecV2 }

// Unmarshal reads a message and marshals it once.
func (c sizeCaching) Unmarshal(data mem.BufferSlice, into any) error {
	if err := c.CodecV2.Unmarshal(data, into); err != nil {
		return err
	}
	again, err := c.Marshal(into)
	if err != nil {
		return err
	}
	again.Free()
	return nil
}

// silent ignores failures, which RunSpecs reports as well.
type silent struct{}

// Fail does nothing.
func (silent) Fail() {}

// countSpecs counts the specs in a report of Ginkgo by how they ended.
func countSpecs(t *testing.T, file string) map[string]int {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var reports []types.Report
	if err := json.Unmarshal(content, &reports); err != nil {
		t.Fatal(err)
	}
	counted := map[string]int{}
	for _, report := range reports {
		for _, spec := range report.SpecReports.WithLeafNodeType(types.NodeTypeIt) {
			counted[spec.State.String()]++
		}
	}
	return counted
}
