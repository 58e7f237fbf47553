package integration

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
)

// example is a controller of examples as a process, and the objects of its host.
type example struct {
	t       *testing.T
	program string // virtual-machine
	plural  string // virtualmachines
	// host is spec.host of its objects: all tests share one etcd.
	host string
	// watches is the API server of the controller, deletes the API server of the user.
	watches, deletes string
	server           *server
	stateDir         string
	process          *exec.Cmd
}

var plurals = map[string]string{"virtual-machine": "virtualmachines", "database": "databases"}

// built has the folder of the programs, which are built once.
var built = sync.OnceValues(func() (string, error) {
	folder := filepath.Join(shared.folder, "examples")
	build := exec.Command("go", "build", "-o", folder+"/", "./examples/virtual-machine", "./examples/database")
	build.Dir = filepath.Join("..", "..", "..")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath -buildvcs=false -tags=grpcnotrace")
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the examples: %w: %s", err, output)
	}
	return folder, nil
})

// newExample starts a controller that watches one API server, for objects that are deleted at another one or the same.
func newExample(t *testing.T, program, watches, deletes string) *example {
	t.Helper()
	e := &example{t: t, program: program, plural: plurals[program], host: objectName(t.Name()), watches: watches,
		deletes: deletes, server: serverOf(t, deletes), stateDir: t.TempDir()}
	e.apply()
	t.Cleanup(e.endGuests)
	e.start()
	t.Cleanup(func() { e.kill() })
	return e
}

// serverOf returns the API server of a name.
func serverOf(t *testing.T, name string) *server {
	t.Helper()
	if name == "stock" {
		return mustServe(t, shared.stock)
	}
	return ours(t)
}

// collectionOf has the paths of the kinds in the manifests.
var collectionOf = map[string]string{
	"CustomResourceDefinition": definitions,
	"Namespace":                "/api/v1/namespaces",
	"ServiceAccount":           "/api/v1/namespaces/%s/serviceaccounts",
	"ClusterRole":              "/apis/rbac.authorization.k8s.io/v1/clusterroles",
	"ClusterRoleBinding":       "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
}

var kindLine = regexp.MustCompile(`(?m)^kind: (\w+)$`)

// apply creates the objects of the manifests, unless another test has.
func (e *example) apply() {
	e.t.Helper()
	for _, file := range []string{"crd.yaml", "rbac.yaml"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "..", "examples", e.program, "deploy", file))
		if err != nil {
			e.t.Fatal(err)
		}
		for document := range strings.SplitSeq(string(text), "\n---\n") {
			kind := kindLine.FindStringSubmatch(document)[1]
			path := strings.Replace(collectionOf[kind], "%s", e.program, 1)
			got := e.server.do(e.t, http.MethodPost, path, "application/yaml", document)
			if got.code != http.StatusCreated && got.code != http.StatusConflict {
				e.t.Fatalf("create %s of %s: %d %s", kind, file, got.code, got.text)
			}
		}
	}
	for _, name := range []string{e.watches, e.deletes} {
		s := serverOf(e.t, name)
		wait(e.t, func() error {
			if got := s.do(e.t, http.MethodGet, e.path(""), asJSON, nil); got.code != http.StatusOK {
				return fmt.Errorf("%s does not serve %s: %s", name, e.plural, got.text)
			}
			return nil
		})
	}
}

// kubeconfig returns the file with the rights of the manifests.
func (e *example) kubeconfig() string {
	e.t.Helper()
	config, err := clientcmd.LoadFromFile(filepath.Join(shared.folder, e.watches, "admin.kubeconfig"))
	if err != nil {
		e.t.Fatal(err)
	}
	for _, user := range config.AuthInfos {
		user.Impersonate = "system:serviceaccount:" + e.program + ":" + e.program
	}
	file := filepath.Join(e.stateDir, "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		e.t.Fatal(err)
	}
	return file
}

// start starts the controller.
func (e *example) start() {
	e.t.Helper()
	folder, err := built()
	if err != nil {
		e.t.Fatal(err)
	}
	e.process = exec.Command(filepath.Join(folder, e.program), "--kubeconfig="+e.kubeconfig(), "--state-dir="+e.stateDir,
		"--host="+e.host)
	begin(e.t, e.process)
}

// kill ends the controller as kill -9 does.
func (e *example) kill() {
	if e.process != nil {
		_ = e.process.Process.Kill()
		_ = e.process.Wait()
		e.process = nil
	}
}

func (e *example) path(name string) string {
	return strings.TrimSuffix("/apis/example.exeunt.io/v1/namespaces/default/"+e.plural+"/"+name, "/")
}

// create creates an object and waits until its guest runs.
func (e *example) create(name string, spec map[string]any) {
	e.t.Helper()
	e.post(name, spec)
	e.awaitRunning(name)
}

func (e *example) post(name string, spec map[string]any) {
	e.t.Helper()
	spec["host"] = e.host
	object := map[string]any{"apiVersion": "example.exeunt.io/v1",
		"kind":     map[string]string{"virtualmachines": "VirtualMachine", "databases": "Database"}[e.plural],
		"metadata": map[string]any{"name": e.host + name}, "spec": spec}
	got := e.server.do(e.t, http.MethodPost, e.path(""), asJSON, object)
	if got.code != http.StatusCreated {
		e.t.Fatalf("create %s: %d %s", name, got.code, got.text)
	}
}

func (e *example) awaitRunning(name string) {
	e.t.Helper()
	e.awaitEvent(name, "Started: the guest is process ")
	console := filepath.Join(e.stateDir, string(e.get(name).GetUID()), "console.log")
	wait(e.t, func() error { // a signal before is one for a machine that has not booted
		text, err := os.ReadFile(console)
		if err == nil && !strings.Contains(string(text), "runs\n") {
			err = fmt.Errorf("the guest has printed %q", text)
		}
		return err
	})
}

func (e *example) get(name string) *unstructured.Unstructured {
	e.t.Helper()
	got := e.server.do(e.t, http.MethodGet, e.path(e.host+name), asJSON, nil)
	if got.code == http.StatusNotFound {
		return nil
	}
	if got.code != http.StatusOK {
		e.t.Fatalf("get %s: %d %s", name, got.code, got.text)
	}
	return got.body
}

// delete deletes an object: as kubectl does at our API server, by the command that writes the annotation at a stock one.
// It returns the deadline of a graceful deletion.
func (e *example) delete(name string, flags ...string) time.Time {
	e.t.Helper()
	if e.deletes == "ours" {
		return e.deleteAsKubectl(name, flags)
	}
	args := append([]string{"delete", e.plural + ".example.exeunt.io/" + e.host + name, "-n", "default", "--wait=false",
		"--kubeconfig=" + filepath.Join(shared.folder, e.deletes, "admin.kubeconfig")}, flags...)
	command := exec.CommandContext(e.t.Context(), filepath.Join(binaries(), "exeunt"), args...)
	output, err := command.CombinedOutput()
	if err != nil {
		e.t.Fatalf("exeunt %v: %v: %s", args, err, output)
	}
	_, text, _ := strings.Cut(strings.TrimSpace(string(output)), "its deadline is ")
	end, _ := time.Parse(time.RFC3339, text) // the zero time without a deadline
	return end
}

// deleteAsKubectl sends what kubectl delete sends: 0 for --force, nothing without flags.
func (e *example) deleteAsKubectl(name string, flags []string) time.Time {
	e.t.Helper()
	body := map[string]any{"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
	for _, flag := range flags {
		seconds, _ := strconv.Atoi(strings.TrimPrefix(flag, "--grace-period=")) // 0 for --force
		body["gracePeriodSeconds"] = seconds
	}
	got := e.server.do(e.t, http.MethodDelete, e.path(e.host+name), asJSON, body)
	if got.code != http.StatusOK {
		e.t.Fatalf("delete %s: %d %s", name, got.code, got.text)
	}
	return deletionOf(got.body).end
}

// events returns the reasons and messages of the events of an object.
func (e *example) events(name string) []string {
	e.t.Helper()
	query := url.Values{"fieldSelector": {"involvedObject.name=" + e.host + name}}
	got := e.server.do(e.t, http.MethodGet, "/api/v1/namespaces/default/events?"+query.Encode(), asJSON, nil)
	items, _, err := unstructured.NestedSlice(got.body.Object, "items")
	if err != nil {
		e.t.Fatal(err)
	}
	var found []string
	for _, item := range items {
		event, _ := item.(map[string]any)
		found = append(found, fmt.Sprint(event["reason"], ": ", event["message"]))
	}
	return found
}

// awaitEvent waits until an event of the object begins with the text, and returns it.
func (e *example) awaitEvent(name, text string) (found string) {
	e.t.Helper()
	wait(e.t, func() error {
		events := e.events(name)
		for _, event := range events {
			if strings.HasPrefix(event, text) {
				found = event
				return nil
			}
		}
		return fmt.Errorf("%s has no event %q: %q", name, text, events)
	})
	return found
}

// pid returns the process ID of the guest of an object.
func (e *example) pid(name string) int {
	e.t.Helper()
	event := e.awaitEvent(name, "Started: the guest is process ")
	id, err := strconv.Atoi(event[strings.LastIndexByte(event, ' ')+1:])
	if err != nil {
		e.t.Fatal(err)
	}
	return id
}

// awaitGone waits until the object is gone, and returns when that was seen.
func (e *example) awaitGone(name string) time.Time {
	e.t.Helper()
	wait(e.t, func() error {
		if object := e.get(name); object != nil {
			return fmt.Errorf("%s stays: %v, events %q", name, object.Object["metadata"], e.events(name))
		}
		return nil
	})
	return time.Now()
}

// runs reports whether the process is a guest of this test: it has its lock open.
func (e *example) runs(pid int) bool {
	lock, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/3", pid))
	return err == nil && strings.HasPrefix(lock, e.stateDir)
}

// endGuests leaves no guest behind when the test ends.
func (e *example) endGuests() {
	files, _ := filepath.Glob(filepath.Join(e.stateDir, "*", "guest"))
	for _, file := range files {
		text, _ := os.ReadFile(file)
		id, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil || !e.runs(id) {
			continue
		}
		if err := syscall.Kill(id, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			e.t.Error(err)
		}
	}
}
