package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"time"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/internal/sandbox"
	"github.com/exeunt-io/exeunt/pkg/csimock"
)

// startSidecar starts a provisioner beside the driver, in a pod of the name.
func (s *scene) startSidecar(driver *sandbox.Driver, name string, env []string, args ...string) *sandbox.Process {
	s.t.Helper()
	process, err := s.plane.StartProvisioner(s.ctx, driver, sandbox.Controller{
		Name: name, HonorReclaimPolicy: true,
		Env:  append([]string{"NAMESPACE=" + deploy.Namespace, "POD_NAMESPACE=" + deploy.Namespace, "POD_NAME=" + name}, env...),
		Args: append([]string{"--http-endpoint=127.0.0.1:0"}, args...),
	})
	s.must(err, "start provisioner "+name)
	s.processes = append(s.processes, process)
	return process
}

// stopSidecar stops a provisioner that the test has started.
func (s *scene) stopSidecar(process *sandbox.Process) {
	s.t.Helper()
	s.must(process.Stop(s.ctx), "stop provisioner")
	s.forget(process)
}

// awaitLog waits until the process has logged the text.
func (s *scene) awaitLog(process *sandbox.Process, text string) {
	s.t.Helper()
	err := wait.PollUntilContextCancel(s.ctx, 50*time.Millisecond, true, func(context.Context) (bool, error) {
		return s.logContains(process, text), nil
	})
	s.must(err, fmt.Sprintf("wait until %s has logged %q", process.Name(), text))
}

// createNode makes a node on which the driver of the cluster runs, in the place that
// the labels say.
func (s *scene) createNode(name string, labels map[string]string) {
	s.t.Helper()
	_, err := s.client.CoreV1().Nodes().Create(s.ctx, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}, metav1.CreateOptions{})
	s.must(err, "create node")
	var keys []string
	for key := range labels {
		keys = append(keys, key)
	}
	_, err = s.client.StorageV1().CSINodes().Create(s.ctx, &storagev1.CSINode{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{Name: s.driver.DriverName, NodeID: name, TopologyKeys: keys}}},
	}, metav1.CreateOptions{})
	s.must(err, "create CSI node")
}

// callsOf counts the calls of the method that a driver has finished.
func (s *scene) callsOf(driver *sandbox.Driver, method string) int {
	s.t.Helper()
	calls, err := csimock.ReadCalls(driver.CallLog)
	s.must(err, "read call log")
	count := 0
	for _, call := range calls {
		if call.Method == method {
			count++
		}
	}
	return count
}

// servingAddress finds in a provisioner's log where it serves.
var servingAddress = regexp.MustCompile(`"Serving metrics and health".* address="([^"]+)"`)

// get returns what a provisioner serves at the path, and the status.
func (s *scene) get(process *sandbox.Process, path string) (string, int) {
	s.t.Helper()
	text, err := os.ReadFile(process.LogFile())
	s.must(err, "read log")
	found := servingAddress.FindSubmatch(text)
	if found == nil {
		s.t.Fatalf("the provisioner does not say where it serves:\n%s", text)
	}
	request, err := http.NewRequestWithContext(s.ctx, http.MethodGet, "http://"+string(found[1])+path, nil)
	s.must(err, "make request")
	response, err := http.DefaultClient.Do(request)
	s.must(err, "read "+path)
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	s.must(err, "read "+path)
	return string(body), response.StatusCode
}
