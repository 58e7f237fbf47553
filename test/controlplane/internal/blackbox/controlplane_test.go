package blackbox

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// apiServerVersion is the version in go.mod.
const apiServerVersion = "v1.36.3"

func TestServerReportsItsVersion(t *testing.T) {
	t.Parallel()
	version, err := start(t, "").admin(t).Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if version.GitVersion != apiServerVersion || version.Major != "1" || version.Minor != "36" {
		t.Errorf("version = %+v, want %s", version, apiServerVersion)
	}
}

func TestTwoControlPlanesRunSideBySide(t *testing.T) {
	t.Parallel()
	first, second := start(t, ""), start(t, "")
	if first.url == second.url {
		t.Fatalf("both serve on %s", first.url)
	}
	createConfigMap(t, first.admin(t), "object")
	_, err := second.admin(t).CoreV1().ConfigMaps("default").Get(deadline(t), "object", metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("get an object that only the other control plane stores: %v, want not found", err)
	}
}

func TestRBACIsEnforced(t *testing.T) {
	t.Parallel()
	bob := filepath.Join(t.TempDir(), "bob")
	robot := filepath.Join(t.TempDir(), "robot")
	plane := start(t, "", "--user", "bob,devs="+bob, "--service-account", "lab/robot="+robot)
	for name, tc := range map[string]struct {
		kubeconfig string
		allowed    bool
	}{
		"the administrator may do everything":         {filepath.Join(plane.dir, "admin.kubeconfig"), true},
		"a named user may do nothing":                 {bob, false},
		"a service account may do nothing":            {robot, false},
		"a user in system:masters may do all":         {plane.kubeconfig(t, "--user", "eve", "--group", "system:masters"), true},
		"a user created later may do nothing":         {plane.kubeconfig(t, "--user", "carol"), false},
		"a service account created later may do none": {plane.kubeconfig(t, "--service-account", "lab/late"), false},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := client(t, tc.kubeconfig).CoreV1().Secrets("default").List(deadline(t), metav1.ListOptions{})
			if (err == nil) != tc.allowed || (err != nil && !apierrors.IsForbidden(err)) {
				t.Errorf("list secrets: %v, want allowed %t", err, tc.allowed)
			}
		})
	}
}

func TestRestartKeepsObjectsAndAddress(t *testing.T) {
	t.Parallel()
	first := start(t, "")
	createConfigMap(t, first.admin(t), "object")
	first.stop(t)
	kubeconfig := first.kubeconfig(t, "--user", "eve", "--group", "system:masters")

	second := start(t, first.dir)
	if second.url != first.url {
		t.Errorf("%s became %s", first.url, second.url)
	}
	if _, err := client(t, kubeconfig).CoreV1().ConfigMaps("default").
		Get(deadline(t), "object", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

func TestEtcdRunsInAnotherProcess(t *testing.T) {
	t.Parallel()
	etcd, endpoint := startEtcd(t)
	plane := start(t, "", "--etcd", endpoint)
	createConfigMap(t, plane.admin(t), "object")
	if _, err := os.Stat(filepath.Join(plane.dir, "etcd")); !os.IsNotExist(err) {
		t.Errorf("the control plane has an etcd of its own: %v", err)
	}
	if _, err := os.Stat(filepath.Join(etcd.dir, "etcd")); err != nil {
		t.Errorf("the other process has no data: %v", err)
	}
}

func TestStoredObjectsAreServed(t *testing.T) {
	t.Parallel()
	_, endpoint := startEtcd(t)
	configMaps := start(t, "", "--etcd", endpoint).admin(t).CoreV1().ConfigMaps("default")
	const count = 250 // more than two transactions
	var values strings.Builder
	for i := range count {
		object := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"stored-%d"}}`,
			i)
		fmt.Fprintf(&values, `{"key":"/registry/configmaps/default/stored-%d","value":%q}`, i,
			base64.StdEncoding.EncodeToString([]byte(object)))
	}
	put := command(t, "put", "--etcd", endpoint)
	put.Stdin = strings.NewReader(values.String())
	if output, err := put.CombinedOutput(); err != nil {
		t.Fatalf("put: %v, %s", err, output)
	}
	list, err := configMaps.List(deadline(t), metav1.ListOptions{FieldSelector: "metadata.name!=kube-root-ca.crt"})
	if err != nil || len(list.Items) != count {
		t.Errorf("the API server serves %d of %d objects, %v", len(list.Items), count, err)
	}
}

func TestDirectoryInUseIsRejected(t *testing.T) {
	t.Parallel()
	plane := start(t, "")
	output, err := command(t, "--data-dir", plane.dir).CombinedOutput()
	if err == nil || !strings.Contains(string(output), "another control plane is using it") {
		t.Errorf("second start on %s: %v, %s", plane.dir, err, output)
	}
}

func TestPodNeedsServiceAccountOnlyWithThePlugin(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		args     []string
		rejected bool
	}{
		"by default":     {nil, false},
		"plugin enabled": {[]string{"--extra-arg", "enable-admission-plugins=PodNodeSelector,ServiceAccount"}, true},
		"another plugin": {[]string{"--extra-arg", "enable-admission-plugins=PodNodeSelector"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: "pod"},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "none"}}},
			}
			_, err := start(t, "", tc.args...).admin(t).CoreV1().Pods("default").Create(deadline(t), pod, metav1.CreateOptions{})
			if apierrors.IsForbidden(err) != tc.rejected || err != nil && !tc.rejected {
				t.Errorf("the API server answered %v, want a rejection: %v", err, tc.rejected)
			}
		})
	}
}

func TestAuditLogHasOneLinePerRequest(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "audit.log")
	plane := start(t, "", "--audit-log", file)
	createConfigMap(t, client(t, plane.kubeconfig(t, "--user", "eve", "--group", "system:masters")), "object")
	plane.stop(t)
	var creates int
	for _, event := range readAudit(t, file) {
		if event.Level != "Metadata" || event.Stage == "RequestReceived" || event.Stage == "ResponseStarted" {
			t.Errorf("event of level %s at stage %s", event.Level, event.Stage)
		}
		if event.User.Username == "eve" && event.Verb == "create" && event.ObjectRef.Resource == "configmaps" {
			creates++
		}
	}
	if creates != 1 {
		t.Errorf("%d events for one request", creates)
	}
}

func TestStopLeavesNothing(t *testing.T) {
	t.Parallel()
	temporary := t.TempDir()
	plane := &controlPlane{readyFile: filepath.Join(t.TempDir(), "ready"), exited: make(chan struct{})}
	command := command(t, "--ready-file", plane.readyFile)
	command.Env = append(os.Environ(), "TMPDIR="+temporary)
	plane.run(t, command)
	if content, err := os.ReadFile(plane.readyFile); string(content) != plane.url+"\n" {
		t.Errorf("ready file contains %q, %v, want %s", content, err, plane.url)
	}
	plane.stop(t)
	if plane.exitErr != nil {
		t.Errorf("stop: %v, want exit code 0", plane.exitErr)
	}
	if err := syscall.Kill(-command.Process.Pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("signal the process group: %v, want no process left", err)
	}
	if left, err := os.ReadDir(temporary); err != nil || len(left) != 0 {
		t.Errorf("left in the temporary directory: %v, %v", left, err)
	}
	if _, err := os.Stat(plane.readyFile); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("stat ready file: %v, want not found", err)
	}
}

func TestProgramThatDiesIsReported(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]string{"3": "exit status 3", "0": "kube-apiserver ended by itself"} {
		program := filepath.Join(t.TempDir(), "kube-apiserver")
		script := "#!/bin/sh\nfor i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo line $i; done\nexit " + code + "\n"
		if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
		output, err := command(t, "--data-dir", t.TempDir(), "--in-memory-speed", "--kube-apiserver", program).CombinedOutput()
		if err == nil || !strings.Contains(string(output), want) || !strings.Contains(string(output), "line 3\n") ||
			!strings.Contains(string(output), "line 12\n") || strings.Contains(string(output), "line 2\n") {
			t.Errorf("exit code %s: %v\n%s", code, err, output)
		}
	}
}

func TestInputErrorsAreOneSentence(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"a misspelled flag":                 {[]string{"--dta-dir", "x"}, "unknown flag: --dta-dir, see controlplane --help"},
		"a misspelled command":              {[]string{"kubeconfg"}, `unknown command "kubeconfg", did you mean kubeconfig?`},
		"an unknown API flag":               {[]string{"--extra-arg", "nonsense=1"}, "parse flags of kube-apiserver: unknown flag: --nonsense"},
		"an unknown feature gate":           {[]string{"--feature-gates", "Foo=true"}, "set feature gates: unrecognized feature gate: Foo"},
		"a kube-apiserver that is a folder": {[]string{"--kube-apiserver", "/tmp"}, "find kube-apiserver: /tmp is no file"},
		"an absent kube-apiserver":          {[]string{"--kube-apiserver", "/nonexistent"}, "find kube-apiserver: stat /nonexistent: no such file or directory"},
		"a user without a file":             {[]string{"--user", "bob"}, `parse "bob": the file is missing, want WHO=FILE`},
		"values without an etcd":            {[]string{"put"}, "--etcd is missing: it is the endpoint that controlplane etcd prints"},
		"a directory without a key": {[]string{"kubeconfig", "--data-dir", "/nonexistent", "--user", "bob", "--out", "x"},
			"find control plane: none has ever run on /nonexistent"},
	} {
		t.Run(name, func(t *testing.T) {
			output, err := command(t, tc.args...).CombinedOutput()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != 1 {
				t.Errorf("run: %v, want exit code 1", err)
			}
			if got := strings.TrimSpace(string(output)); got != "controlplane: "+tc.want {
				t.Errorf("output = %s\nwant controlplane: %s", got, tc.want)
			}
		})
	}
}

// startEtcd runs etcd alone and returns its endpoint.
func startEtcd(t *testing.T) (etcd *controlPlane, endpoint string) {
	t.Helper()
	etcd = &controlPlane{dir: t.TempDir(), exited: make(chan struct{})}
	etcd.run(t, command(t, "etcd", "--data-dir", etcd.dir, "--in-memory-speed"))
	return etcd, strings.TrimPrefix(etcd.url, "controlplane: etcd ")
}

// createConfigMap creates an object that identifies a control plane.
func createConfigMap(t *testing.T, client kubernetes.Interface, name string) {
	t.Helper()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := client.CoreV1().ConfigMaps("default").Create(deadline(t), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// auditEvent has the checked fields of one line of the audit log.
type auditEvent struct {
	Level, Stage, Verb string
	User               struct{ Username string }
	ObjectRef          struct{ Resource string }
}

// readAudit returns the events in file.
func readAudit(t *testing.T, file string) []auditEvent {
	t.Helper()
	log, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	var events []auditEvent
	for decoder := json.NewDecoder(bufio.NewReader(log)); decoder.More(); {
		var event auditEvent
		if err := decoder.Decode(&event); err != nil {
			t.Fatal(err)
		}
		events = append(events, event)
	}
	return events
}
