package csimock_test

import (
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/kubernetes-csi/csi-test/v5/pkg/sanity"
	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	"github.com/onsi/gomega"

	"github.com/exeunt-io/exeunt/pkg/csimock"
)

// verdicts counts the specs of csi-sanity by how they ended.
type verdicts map[types.SpecState]int

// sanityVerdicts runs csi-sanity once per process, which is all that Ginkgo
// allows; with -count the later rounds judge the first one again.
var sanityVerdicts sync.Once

// firstVerdicts is what sanityVerdicts found.
var firstVerdicts = verdicts{}

// The one pending spec is switched off in the source of csi-test itself.
// TestPagesStayTrue covers what it would ask.
func TestSanity(t *testing.T) {
	sanityVerdicts.Do(func() { runSanity(t, firstVerdicts) })
	t.Logf("specs of csi-sanity: %v", firstVerdicts)
	want := verdicts{types.SpecStatePassed: 91, types.SpecStatePending: 1}
	if diff := cmp.Diff(want, firstVerdicts); diff != "" {
		t.Errorf("specs of csi-sanity (-want +got):\n%s", diff)
	}
}

// runSanity runs csi-sanity against a driver that can do everything, over a
// unix socket, and counts how the specs end.
func runSanity(t *testing.T, counted verdicts) {
	directory := t.TempDir()
	socket := filepath.Join(directory, "csi.sock")
	server, err := csimock.Start(t.Context(), csimock.Config{
		Capabilities:      csimock.AllCapabilities(),
		MaxVolumesPerNode: 5,
		StateFile:         filepath.Join(directory, "state.json"),
		CallLog:           filepath.Join(directory, "calls.jsonl"),
	}, socket)
	if err != nil {
		t.Fatal(err)
	}
	config := sanity.NewTestConfig()
	config.TargetPath = filepath.Join(directory, "targets")
	config.StagingPath = filepath.Join(directory, "staging")
	config.TestNodeVolumeAttachLimit = true
	config.TestVolumeParameters = map[string]string{"tier": "gold"}
	config.TestSnapshotParameters = map[string]string{"keep": "7d"}
	config.TestVolumeMutableParameters = map[string]string{"iops": "3000"}
	specs := sanity.GinkgoTest(&config)
	// Without an address in the configuration, csi-sanity uses the connection
	// it is given. Its own way to connect misses the moment at times.
	specs.Conn = dial(t, socket)
	gomega.RegisterFailHandler(ginkgo.Fail)
	ginkgo.ReportAfterEach(func(report ginkgo.SpecReport) { counted[report.State]++ })
	ginkgo.RunSpecs(t, "csi-sanity")
	if err := server.Stop(); err != nil {
		t.Error(err)
	}
}
