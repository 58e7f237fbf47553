package programs

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// running is a "sandbox" that has started.
type running struct {
	*testing.T
	command *exec.Cmd
	// kubeconfig is what it has printed; said is the rest of its output until the last hint.
	kubeconfig, said string
	rest             io.Reader
	temporary        string
}

// startSandbox starts the command, and waits until it has printed its hints.
func startSandbox(t *testing.T, args ...string) *running {
	t.Helper()
	r := &running{T: t, temporary: shortTemp(t)}
	path, err := harness.Binaries().Path("sandbox")
	r.must(err)
	ctx, cancel := context.WithTimeout(t.Context(), harness.Timeout)
	t.Cleanup(cancel)
	r.command = exec.CommandContext(ctx, path, args...)
	r.command.Env = append(os.Environ(), "TMPDIR="+r.temporary)
	output, err := r.command.StdoutPipe()
	r.must(err)
	r.rest, err = r.command.StderrPipe()
	r.must(err)
	r.must(r.command.Start())
	line, _ := bufio.NewReader(output).ReadString('\n')
	r.kubeconfig = strings.TrimPrefix(strings.TrimSpace(line), "export KUBECONFIG=")
	hints := bufio.NewReader(r.rest)
	for !strings.HasPrefix(line, "Ctrl-C") {
		if line, err = hints.ReadString('\n'); err != nil {
			t.Fatalf("the sandbox has ended: %v\n%s%s", r.command.Wait(), r.said, line)
		}
		r.said += line
	}
	r.rest = hints
	return r
}

func (r *running) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// wait waits for the end, and returns the exit code and what was said last.
func (r *running) wait() (int, string) {
	r.Helper()
	text, err := io.ReadAll(r.rest)
	r.must(err)
	var exit *exec.ExitError
	if err := r.command.Wait(); err != nil && !errors.As(err, &exit) {
		r.Fatal(err)
	}
	expectEmpty(r.T, r.temporary)
	return r.command.ProcessState.ExitCode(), string(text)
}

// metrics returns what is served at each printed address.
func (r *running) metrics() []string {
	r.Helper()
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} // the certificate is made at the start
	var served []string
	for _, address := range regexp.MustCompile(`https?://127\.0\.0\.1:[0-9]+/metrics`).FindAllString(r.said, -1) {
		request, err := http.NewRequestWithContext(r.Context(), http.MethodGet, address, nil)
		r.must(err)
		response, err := client.Do(request)
		r.must(err)
		body, err := io.ReadAll(response.Body)
		r.must(errors.Join(err, response.Body.Close()))
		served = append(served, string(body))
	}
	return served
}

// child returns the process of a program of the sandbox.
func (r *running) child(name string) *os.Process {
	r.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	r.must(err)
	for _, file := range files {
		line, err := os.ReadFile(file)
		program, _, _ := strings.Cut(string(line), "\x00")
		if err != nil || filepath.Base(program) != name || !strings.Contains(string(line), r.temporary) {
			continue
		}
		id, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		r.must(err)
		process, err := os.FindProcess(id)
		r.must(err)
		return process
	}
	r.Fatalf("the sandbox has no %s", name)
	return nil
}

func TestSandboxHasMetricsFaultsAndAdmissionPolicy(t *testing.T) {
	t.Parallel()
	faults := filepath.Join(t.TempDir(), "faults.yaml")
	if err := os.WriteFile(faults, []byte("- {method: CreateVolume, code: ResourceExhausted}"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := startSandbox(t, "--faults="+faults)
	served := r.metrics()
	if len(served) != 2 || !strings.Contains(served[0], "workqueue_depth") ||
		!strings.Contains(served[1], "exeunt_provisioning_journal") {
		t.Errorf("metrics: %.200q", served)
	}
	r.expectAdmissionPolicy()
	r.must(r.command.Process.Signal(syscall.SIGINT))
	if code, said := r.wait(); code != 0 || strings.Contains(said, "sandbox:") {
		t.Errorf("exit code %d, said %q", code, said)
	}
}

// expectAdmissionPolicy checks that the policy is there, for the driver, where the API server serves it.
func (r *running) expectAdmissionPolicy() {
	r.Helper()
	if !harness.ServesAdmissionPolicy() {
		harness.Lack(r.T, "the admission policy")
		if !strings.Contains(r.said, "has no MutatingAdmissionPolicy, so the admission policy is left out") {
			r.Errorf("said %q", r.said)
		}
		return
	}
	config, err := sandbox.LoadConfig(r.kubeconfig)
	r.must(err)
	client, err := kubernetes.NewForConfig(config)
	r.must(err)
	_, err = client.AdmissionregistrationV1().MutatingAdmissionPolicies().
		Get(r.Context(), deploy.Policy, metav1.GetOptions{})
	r.must(err)
	drivers, err := client.CoreV1().ConfigMaps(deploy.Namespace).Get(r.Context(), deploy.Drivers, metav1.GetOptions{})
	if err != nil || len(drivers.Data) != 1 {
		r.Errorf("drivers of the policy: %v, %v", drivers.Data, err)
	}
}

func TestSandboxEndsWithItsPrograms(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"provisioner", "pv-controller", "csimock", "controlplane"} {
		t.Run(program, func(t *testing.T) {
			r := startSandbox(t)
			r.must(r.child(program).Kill())
			code, said := r.wait()
			if code == 0 || !strings.Contains(said, "a program of the sandbox has ended, so all others are stopped: run "+
				program) {
				t.Errorf("exit code %d, said %q", code, said)
			}
		})
	}
}

func TestSandboxRefusesFaultsBeforeItStarts(t *testing.T) {
	t.Parallel()
	path, err := harness.Binaries().Path("sandbox")
	if err != nil {
		t.Fatal(err)
	}
	faults := filepath.Join(t.TempDir(), "faults.yaml")
	if err := os.WriteFile(faults, []byte("- {method: CreateVolumes, code: ResourceExhausted}"), 0o600); err != nil {
		t.Fatal(err)
	}
	output, err := exec.CommandContext(t.Context(), path, "--faults="+faults).CombinedOutput()
	if err == nil || !strings.Contains(string(output), "--faults: read faults "+faults+": entry 1: unknown method") ||
		strings.Contains(string(output), "starting") {
		t.Errorf("%v: %s", err, output)
	}
}
