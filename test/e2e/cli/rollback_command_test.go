package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// rollbackCommand is "exeunt rollback" in a folder of its own.
type rollbackCommand struct {
	*harness.Session
	dir        string
	kubeconfig string
}

func newRollback(s *harness.Session) rollbackCommand {
	return rollbackCommand{s, s.T.TempDir(), s.Plane.AdminKubeconfig}
}

// process returns the command, not started.
func (c rollbackCommand) process(ctx context.Context, args ...string) *exec.Cmd {
	c.T.Helper()
	path, err := harness.Binaries().Path("exeunt")
	c.Must(err, "find exeunt")
	process := exec.CommandContext(ctx, path, append([]string{"rollback", "--kubeconfig=" + c.kubeconfig}, args...)...)
	process.Dir = c.dir
	return process
}

// run runs the command to its end.
func (c rollbackCommand) run(args ...string) (output string, status int) {
	c.T.Helper()
	process := c.process(c.Ctx, args...)
	text, err := process.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		c.T.Fatalf("exeunt rollback %q: %v", args, err)
	}
	return string(text), process.ProcessState.ExitCode()
}

// runUntilNothingIsLeft repeats the command.
func (c rollbackCommand) runUntilNothingIsLeft() {
	c.T.Helper()
	last := ""
	err := wait.PollUntilContextTimeout(c.Ctx, time.Second, harness.Timeout, true, func(context.Context) (bool, error) {
		text, status := c.run("--confirm")
		last = text
		return status == 0, nil
	})
	if err != nil {
		c.T.Fatalf("something is left: %v\n%s", err, last)
	}
}

// expect runs the command, and checks the exit code and that the output has the words.
func (c rollbackCommand) expect(status int, words []string, args ...string) {
	c.T.Helper()
	text, got := c.run(args...)
	if got != status {
		c.T.Errorf("exeunt rollback %q: exit code %d, want %d:\n%s", args, got, status, text)
	}
	flat := strings.Join(strings.Fields(text), " ")
	for _, word := range words {
		if !strings.Contains(flat, word) {
			c.T.Errorf("exeunt rollback %q lacks %q:\n%s", args, word, text)
		}
	}
}

// states returns the states of the steps, in order.
func (c rollbackCommand) states(args ...string) string {
	c.T.Helper()
	process := c.process(c.Ctx, append(args, "-o", "json")...)
	text, err := process.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		c.T.Fatalf("exeunt rollback %q: %v", args, err)
	}
	var plan struct{ Steps []struct{ State string } }
	c.Must(json.Unmarshal(text, &plan), "decode the plan")
	var all []string
	for _, step := range plan.Steps {
		all = append(all, step.State)
	}
	return strings.Join(all, " ")
}

// files returns the saved files.
func (c rollbackCommand) files() []string {
	c.T.Helper()
	found, err := filepath.Glob(filepath.Join(c.dir, "exeunt-journal-*.yaml"))
	c.Must(err, "find saved files")
	return found
}

// writes returns the successful writes that the command of the user has sent.
func (c rollbackCommand) writes() []string {
	c.T.Helper()
	events, err := sandbox.ReadAudit(c.Plane.AuditLog)
	c.Must(err, "read audit log")
	var all []string
	for _, event := range events {
		read := event.Verb == "get" || event.Verb == "list" || event.Verb == "watch"
		if strings.HasPrefix(event.UserAgent, "exeunt/") && !read {
			all = append(all, fmt.Sprintf("%s %s %s/%s: %d", event.Verb, event.Resource, event.Namespace, event.Name,
				event.Code))
		}
	}
	return all
}

// writeEntry writes a Lease of the driver's journal with one entry.
func writeEntry(s *harness.Session, driver string, kind journal.Kind, claim types.UID) {
	s.T.Helper()
	volume := "pvc-" + string(claim)
	entry := journal.Entry{
		UID: claim, Namespace: "default", Name: "gone",
		Request: journal.Request{CreateVolumeRequest: &csi.CreateVolumeRequest{Name: volume}},
		Volume:  &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: volume}},
	}
	if kind == journal.KindUnresolved {
		entry.Unresolved = &journal.Unresolved{Reason: "the secret is gone\x1b[2J", Since: 1767323045}
	}
	text, err := journal.Encode(entry)
	s.Must(err, "encode entry")
	owner := journal.Journal{Namespace: deploy.Namespace, Driver: driver}
	lease := owner.Lease(kind, 0, "nobody_exeunt", journal.Custody{Written: 1}, map[types.UID]string{claim: text})
	_, err = s.Client.CoordinationV1().Leases(lease.Namespace).Create(s.Ctx, lease, metav1.CreateOptions{})
	s.Must(err, "write Lease")
}

// expectNothingLeft fails the test if an object has a trace of Exeunt.
func expectNothingLeft(s *harness.Session) {
	s.T.Helper()
	check := func(kind string, object metav1.Object) {
		for key := range object.GetAnnotations() {
			if strings.HasPrefix(key, "exeunt.io/") {
				s.T.Errorf("%s %s has the annotation %s", kind, object.GetName(), key)
			}
		}
		for _, name := range object.GetFinalizers() {
			if strings.HasPrefix(name, "exeunt.io/") {
				s.T.Errorf("%s %s has the finalizer %s", kind, object.GetName(), name)
			}
		}
	}
	volumes, err := s.Client.CoreV1().PersistentVolumes().List(s.Ctx, metav1.ListOptions{})
	s.Must(err, "list volumes")
	for i := range volumes.Items {
		check("PersistentVolume", &volumes.Items[i])
	}
	claims, err := s.Client.CoreV1().PersistentVolumeClaims("").List(s.Ctx, metav1.ListOptions{})
	s.Must(err, "list claims")
	for i := range claims.Items {
		check("claim", &claims.Items[i])
	}
	leases, err := s.Client.CoordinationV1().Leases("").List(s.Ctx, metav1.ListOptions{})
	s.Must(err, "list leases")
	for i := range leases.Items {
		check("Lease", &leases.Items[i])
		if leases.Items[i].Name == deploy.PVController {
			s.T.Error("the leader Lease of pv-controller is left")
		}
	}
	expectNoPolicyLeft(s)
}

// expectNoPolicyLeft fails the test if an object of the admission policy is left.
func expectNoPolicyLeft(s *harness.Session) {
	s.T.Helper()
	lists, err := s.Client.CoreV1().ConfigMaps("").List(s.Ctx, metav1.ListOptions{FieldSelector: "metadata.name=" +
		deploy.Drivers})
	s.Must(err, "list ConfigMaps")
	if len(lists.Items) > 0 {
		s.T.Errorf("%d lists of drivers are left", len(lists.Items))
	}
	policies, err := s.Client.AdmissionregistrationV1().MutatingAdmissionPolicies().List(s.Ctx, metav1.ListOptions{})
	if !harness.ServesAdmissionPolicy() && apierrors.IsNotFound(err) {
		return
	}
	s.Must(err, "list policies")
	if len(policies.Items) > 0 {
		s.T.Errorf("%d admission policies are left", len(policies.Items))
	}
}
