package csimock_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/test/bufconn"

	"github.com/exeunt-io/exeunt/pkg/csimock"
)

func TestFaultsApplyInOrder(t *testing.T) {
	server, driver := start(t, csimock.Config{})
	if err := server.Inject(
		csimock.Fault{Method: "CreateVolume", Code: codes.Unavailable, Times: 2},
		csimock.Fault{Method: "DeleteVolume", Code: codes.Internal},
		csimock.Fault{Method: "CreateVolume", Code: codes.ResourceExhausted, Times: 1},
	); err != nil {
		t.Fatal(err)
	}
	for _, want := range []codes.Code{codes.Unavailable, codes.Unavailable, codes.ResourceExhausted, codes.OK} {
		_, err := driver.CreateVolume(t.Context(), volumeRequest("one"))
		expectCode(t, err, want)
	}
	for range 3 {
		_, err := driver.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: server.Volumes()[0].ID})
		expectCode(t, err, codes.Internal)
	}
	server.ClearFaults()
	deleteVolume(t, driver, server.Volumes()[0].ID)
}

func TestFaultAppliesToEachNthCall(t *testing.T) {
	_, driver := start(t, csimock.Config{Faults: []csimock.Fault{
		{Method: "CreateVolume", Code: codes.Unavailable, Every: 2},
		{Method: "CreateVolume", Code: codes.Aborted, Every: 2, Times: 1},
	}})
	// The second fault counts the calls that the first one leaves: 1, 3 and 5.
	for _, want := range []codes.Code{codes.OK, codes.Unavailable, codes.Aborted, codes.Unavailable, codes.OK,
		codes.Unavailable, codes.OK} {
		_, err := driver.CreateVolume(t.Context(), volumeRequest("one"))
		expectCode(t, err, want)
	}
}

func TestFaultAfterTheHandler(t *testing.T) {
	server, driver := start(t,
		csimock.Config{Faults: []csimock.Fault{{Method: "CreateVolume", Code: codes.Unavailable, Times: 1, After: true}}})
	_, err := driver.CreateVolume(t.Context(), volumeRequest("one"))
	expectCode(t, err, codes.Unavailable)
	volumes := server.Volumes()
	if len(volumes) != 1 {
		t.Fatalf("there are %d volumes, want 1", len(volumes))
	}
	if call := server.Calls()[0]; call.Code != "Unavailable" || call.Volume != volumes[0].ID {
		t.Errorf("the call is logged as %+v", call)
	}
	if id := create(t, driver, volumeRequest("one")); id != volumes[0].ID {
		t.Errorf("the retry made volume %s besides %s", id, volumes[0].ID)
	}
}

// hang starts a call that hangs after the handler, and returns the channel of its error.
func hang(ctx context.Context, t *testing.T, server *csimock.Server, driver clients) <-chan error {
	t.Helper()
	if err := server.Inject(csimock.Fault{Method: "CreateVolume", Hang: true, After: true}); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := driver.CreateVolume(ctx, volumeRequest("one"))
		ended <- err
	}()
	gomega.NewWithT(t).Eventually(server.Volumes).Should(gomega.HaveLen(1))
	return ended
}

func TestHangEndsWithItsCall(t *testing.T) {
	server, driver := start(t, csimock.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := hang(ctx, t, server, driver)
	cancel()
	expectCode(t, <-ended, codes.Canceled)
	gomega.NewWithT(t).Eventually(server.Calls).Should(gomega.ContainElement(gomega.HaveField("Code", "Canceled")))
}

func TestHangEndsWithTheDriver(t *testing.T) {
	server, driver := start(t, csimock.Config{})
	ended := hang(t.Context(), t, server, driver)
	if err := server.Stop(); err != nil {
		t.Error(err)
	}
	expectCode(t, <-ended, codes.Unavailable)
}

func TestLatencyDelaysTheCall(t *testing.T) {
	for name, tc := range map[string]struct {
		patience time.Duration
		want     codes.Code
		took     time.Duration
	}{
		"patient caller":         {time.Hour, codes.OK, time.Minute},
		"caller with a deadline": {time.Second, codes.DeadlineExceeded, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				driver, err := csimock.New(csimock.Config{Faults: []csimock.Fault{{Method: "Probe", Latency: time.Minute}}})
				if err != nil {
					t.Fatal(err)
				}
				client := inMemory(t, driver)
				ctx, cancel := context.WithTimeout(t.Context(), tc.patience)
				defer cancel()
				began := time.Now()
				_, err = client.Probe(ctx, &csi.ProbeRequest{})
				expectCode(t, err, tc.want)
				if took := time.Since(began); took != tc.took {
					t.Errorf("the call took %v, want %v", took, tc.took)
				}
			})
		})
	}
}

func TestInjectRefuses(t *testing.T) {
	for name, fault := range map[string]csimock.Fault{
		"unknown method":       {Method: "DestroyVolume", Code: codes.Internal},
		"negative times":       {Method: "Probe", Code: codes.Internal, Times: -1},
		"negative every":       {Method: "Probe", Code: codes.Internal, Every: -1},
		"negative latency":     {Method: "Probe", Latency: -1},
		"unknown code":         {Method: "Probe", Code: 99},
		"fault without effect": {Method: "Probe", Times: 3},
	} {
		t.Run(name, func(t *testing.T) {
			driver, err := csimock.New(csimock.Config{})
			if err != nil {
				t.Fatal(err)
			}
			if err := driver.Inject(fault); err == nil {
				t.Errorf("Inject(%+v) took the fault", fault)
			}
		})
	}
}

// faultFile writes a file of faults and returns its path.
func faultFile(t *testing.T, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "faults.yaml")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestLoadFaults(t *testing.T) {
	got, err := csimock.LoadFaults(faultFile(t, `
- {method: DeleteVolume, code: Unavailable, times: 2, every: 3, latency: 100ms}
- method: CreateVolume
  code: DEADLINE_EXCEEDED
  hang: true
  after: true
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []csimock.Fault{
		{Method: "DeleteVolume", Code: codes.Unavailable, Times: 2, Every: 3, Latency: 100 * time.Millisecond},
		{Method: "CreateVolume", Code: codes.DeadlineExceeded, Hang: true, After: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
}

func TestLoadFaultsNamesTheEntry(t *testing.T) {
	for name, tc := range map[string]struct{ content, want string }{
		"unknown method":        {"[{method: Probe, code: Internal}, {method: Destroy, code: Internal}]", `entry 2: unknown method "Destroy"`},
		"unknown code":          {"[{method: Probe, code: Broken}]", `entry 1: unknown code "Broken"`},
		"unknown field":         {"[{method: Probe, cod: Internal}]", `entry 1: decode fault: json: unknown field "cod"`},
		"latency without unit":  {"[{method: Probe, latency: '100'}]", "entry 1: read latency"},
		"times is not a number": {"[{method: Probe, times: often}]", "entry 1: decode fault"},
		"entry without effect":  {"[{method: Probe}]", "entry 1: fault on Probe has no effect"},
		"no list":               {"method: Probe", "want a list of faults"},
		"no YAML":               {"\t", "want a list of faults"},
	} {
		t.Run(name, func(t *testing.T) {
			file := faultFile(t, tc.content)
			_, err := csimock.LoadFaults(file)
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), file) {
				t.Errorf("LoadFaults gives %v, want the file and %q", err, tc.want)
			}
		})
	}
}

// inMemory serves the driver on a listener without a socket, which virtual time
// asks for, until the test ends.
func inMemory(t *testing.T, driver *csimock.Driver) clients {
	t.Helper()
	listener := bufconn.Listen(1 << 16)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- driver.Serve(ctx, listener) }()
	connection := dialMemory(t, listener)
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return clientsOf(connection)
}

func TestFaultOfOneVolume(t *testing.T) {
	server, driver := start(t, csimock.Config{})
	id := create(t, driver, volumeRequest("one"))
	if err := server.Inject(
		csimock.Fault{Method: "CreateVolume", Volume: "two", Code: codes.Internal},
		csimock.Fault{Method: "DeleteVolume", Volume: id, Code: codes.Internal},
	); err != nil {
		t.Fatal(err)
	}
	other := create(t, driver, volumeRequest("three"))
	_, err := driver.CreateVolume(t.Context(), volumeRequest("two"))
	expectCode(t, err, codes.Internal)
	deleteVolume(t, driver, other)
	_, err = driver.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: id})
	expectCode(t, err, codes.Internal)
}

func TestDisconnectAfterTheHandler(t *testing.T) {
	struck, answered := make(chan csimock.Fault, 1), make(chan csimock.Call, 2)
	fault := csimock.Fault{Method: "CreateVolume", Disconnect: true, After: true, Times: 1}
	server, driver := start(t, csimock.Config{
		Faults:       []csimock.Fault{fault},
		FaultApplied: func(f csimock.Fault) { struck <- f }, CallFinished: func(c csimock.Call) { answered <- c },
	})
	_, err := driver.CreateVolume(t.Context(), volumeRequest("one"))
	expectCode(t, err, codes.Unavailable)
	volumes := server.Volumes()
	if len(volumes) != 1 {
		t.Fatalf("there are %d volumes, want 1", len(volumes))
	}
	if applied, call := <-struck, <-answered; applied != fault || call != server.Calls()[0] || call.Seq != 1 ||
		call.Volume != volumes[0].ID || call.Volumes != 1 {
		t.Errorf("applied fault %+v to call %+v", applied, call)
	}
	if id := create(t, driver, volumeRequest("one")); id != volumes[0].ID { // over a new connection
		t.Errorf("the retry made volume %s besides %s", id, volumes[0].ID)
	}
}
