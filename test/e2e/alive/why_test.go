package alive

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/pkg/alive"
	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/status"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// exeunt runs the program as the user, and returns what it prints and how it ends.
func (r *rig) exeunt(user string, args ...string) (string, int) {
	r.Helper()
	args = append(args, "--kubeconfig", r.plane.AdminKubeconfig)
	if user != admin {
		args = append(args, "--as", user)
	}
	command := exec.CommandContext(r.ctx, filepath.Join(harness.Binaries().Dir, "exeunt"), args...)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	_ = command.Run() // the code tells
	if code := command.ProcessState.ExitCode(); code >= 0 && code != 1 {
		return stdout.String(), code
	}
	r.Fatalf("exeunt %v: %s", args, stderr.String())
	return "", 0
}

// why explains the object as a user with the rights of exeunt-viewer, who sees all that is needed.
func (r *rig) why(args ...string) blocker.Report {
	r.Helper()
	text, _ := r.exeunt("viewer", append([]string{"why", "-o", "json"}, args...)...)
	var report blocker.Report
	r.must(json.Unmarshal([]byte(text), &report), "decode "+text)
	if len(report.Incomplete) > 0 {
		r.Errorf("exeunt why %v: incomplete: %q", args, report.Incomplete)
	}
	return report
}

// status returns the teardown as "exeunt status" shows it, nil for none.
func (r *rig) status() *status.Teardown {
	r.Helper()
	text, _ := r.exeunt("viewer", "status", "-o", "json")
	var report struct {
		Teardown *status.Teardown `json:"teardown"`
	}
	r.must(json.Unmarshal([]byte(text), &report), "decode "+text)
	if report.Teardown != nil && len(report.Teardown.Unseen) > 0 {
		r.Errorf("exeunt status: not seen: %q", report.Teardown.Unseen)
	}
	return report.Teardown
}

// expect wants one blocker of the reason first, and the texts in what the report says.
func (r *rig) expect(report blocker.Report, verdict blocker.Verdict, reason blocker.Reason, texts ...string) {
	r.Helper()
	if report.Verdict != verdict || len(report.Blockers) == 0 || report.Blockers[0].Reason != reason {
		r.Errorf("%v %+v, want %v %v", report.Verdict, report.Blockers, verdict, reason)
	}
	said, err := json.Marshal(report)
	r.must(err, "encode")
	for _, text := range texts {
		if !strings.Contains(string(said), text) {
			r.Errorf("%q is not said in %s", text, said)
		}
	}
	if strings.Contains(string(said), "may refuse or undo it") {
		r.Errorf("the guards of Alive are taken for policies that refuse: %s", said)
	}
}

// The whole way: protected, permitted, deleted, over, and back.
func TestWhyAndStatusFollowTeardown(t *testing.T) {
	r := startGuarded(t)
	r.must(sandbox.Apply(r.ctx, r.plane.RESTConfig(), deploy.Viewer), "apply viewer")
	r.bind("viewer", "exeunt-viewer")
	r.namespace("ordinary")

	r.expect(r.why("alive/cluster"), blocker.None, blocker.ClusterProtected, "spec.protected is true", "participant "+others)
	if got := r.status(); got == nil || len(got.Findings) > 0 || got.Freeze != "absent" || got.Armed != "absent" || got.Participants[0] != others {
		t.Errorf("protected: %+v", got)
	}

	r.in(permitted)
	r.expect(r.why("alive/cluster"), blocker.None, blocker.TeardownArmed, "# exeunt teardown --confirm="+string(r.id))

	r.in(deleting)
	r.freeze()
	r.must(r.patch(admin, condition(alive.ConditionStarted), "status"), "start")
	r.expect(r.why("alive/cluster"), blocker.Unknown, blocker.ControllerUnseen, "exeunt-teardown-freeze refuses new claims",
		"condition Started is True", `"finalizer":"`+others+`"`)
	if got := r.status(); got == nil || !got.Deleted || got.Freeze != "inForce" || len(got.Findings) != 1 ||
		!strings.HasPrefix(got.Findings[0], "nobody was seen to carry the teardown out") {
		t.Errorf("deleted: %+v", got)
	}
	r.expect(r.why("pvc/data", "-n", "ordinary"), blocker.Gone, blocker.FreezeRefuses, "# exeunt teardown remove")

	r.must(r.patch(admin, map[string]any{"spec": map[string]any{"protected": true}}), "protect")
	r.expect(r.why("alive/cluster"), blocker.Stuck, blocker.TeardownStopped, "the teardown is stopped: spec.protected is true")

	r.remove()
	r.expect(r.why("alive/cluster"), blocker.Gone, blocker.TeardownEnded, "there is no record of the teardown", "# exeunt teardown remove")
	if got := r.status(); got == nil || got.Alive != "absent" || len(got.Findings) != 1 || !strings.Contains(got.Findings[0], "\nexeunt teardown remove") {
		t.Errorf("over: %+v", got)
	}
	r.liveOn()
}

// liveOn takes the way back that the next steps name.
func (r *rig) liveOn() {
	r.Helper()
	r.exeunt(admin, "teardown", "remove")
	if got := r.status(); got != nil {
		r.Errorf("removed: %+v", got)
	}
	r.until("claims are admitted again", func() bool {
		err := r.dryCreate("ordinary", `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}, spec: `+claimSpec+`}`)
		return !apierrors.IsForbidden(err)
	})
	if report := r.why("pvc/data", "-n", "ordinary"); report.Verdict != blocker.Gone || len(report.Blockers) > 0 {
		r.Errorf("removed: %+v", report)
	}
}
