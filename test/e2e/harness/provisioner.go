package harness

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/pkg/csimock"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// LogContains reports whether the process has logged the text.
func (s *Session) LogContains(process *sandbox.Process, text string) bool {
	s.T.Helper()
	logged, err := os.ReadFile(process.LogFile())
	s.Must(err, "read log")
	return strings.Contains(string(logged), text)
}

// StartProvisioner starts a provisioner for the driver, in a pod of the name.
func (s *Session) StartProvisioner(driver *sandbox.Driver, name string, env []string, args ...string) *sandbox.Process {
	s.T.Helper()
	process, err := s.Plane.StartProvisioner(s.Ctx, driver, sandbox.Controller{
		Name: name, HonorReclaimPolicy: true,
		Env: append([]string{"NAMESPACE=" + deploy.Namespace, "POD_NAMESPACE=" + deploy.Namespace, "POD_NAME=" + name},
			env...),
		Args: append([]string{"--http-endpoint=127.0.0.1:0"}, args...),
	})
	s.Must(err, "start provisioner "+name)
	s.Add(process)
	return process
}

// StopProvisioner stops a provisioner of the test.
func (s *Session) StopProvisioner(process *sandbox.Process) {
	s.T.Helper()
	s.Must(process.Stop(s.Ctx), "stop provisioner")
	s.ExpectEnd(process)
}

// AwaitLog waits until the process has logged the text.
func (s *Session) AwaitLog(process *sandbox.Process, text string) {
	s.T.Helper()
	err := wait.PollUntilContextCancel(s.Ctx, 50*time.Millisecond, true, func(context.Context) (bool, error) {
		return s.LogContains(process, text), nil
	})
	s.Must(err, fmt.Sprintf("wait until %s has logged %q", process.Name(), text))
}

// CountDriverCalls counts the finished calls of the method.
func (s *Session) CountDriverCalls(driver *sandbox.Driver, method string) int {
	s.T.Helper()
	calls, err := csimock.ReadCalls(driver.CallLog)
	s.Must(err, "read call log")
	count := 0
	for _, call := range calls {
		if call.Method == method {
			count++
		}
	}
	return count
}

// servingAddress matches the log line with the address of the HTTP endpoint.
var servingAddress = regexp.MustCompile(`"Serving metrics and health".* address="([^"]+)"`)

// HTTPGet returns the body and the status that a provisioner serves at the path.
func (s *Session) HTTPGet(process *sandbox.Process, path string) (string, int) {
	s.T.Helper()
	text, err := os.ReadFile(process.LogFile())
	s.Must(err, "read log")
	found := servingAddress.FindSubmatch(text)
	if found == nil {
		s.T.Fatalf("the log has no address of the HTTP endpoint:\n%s", text)
	}
	request, err := http.NewRequestWithContext(s.Ctx, http.MethodGet, "http://"+string(found[1])+path, nil)
	s.Must(err, "make request")
	response, err := http.DefaultClient.Do(request)
	s.Must(err, "read "+path)
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	s.Must(err, "read "+path)
	return string(body), response.StatusCode
}
