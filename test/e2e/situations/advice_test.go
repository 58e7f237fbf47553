package situations

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/reference"
)

// expectAdvice checks all blockers: no evidence is there twice, and no next step deletes what is being deleted
// already, says to wait where waiting does not help, or begins with what a running machine suffers from.
func (r *place) expectAdvice(report blocker.Report) {
	r.T.Helper()
	reader, err := cluster.NewReader(r.Plane.RESTConfig())
	r.Must(err, "connect")
	r.expectAdviceOf(reader, report.Blockers)
}

func (r *place) expectAdviceOf(reader *cluster.Reader, blockers []blocker.Blocker) {
	r.T.Helper()
	for _, b := range blockers {
		r.expectAdviceOf(reader, b.Blockers)
		for i, evidence := range b.Evidence {
			if slices.Contains(b.Evidence[:i], evidence) {
				r.T.Errorf("%v of %v has the evidence %q twice", b.Reason, b.Object, evidence.Text)
			}
		}
		first, _, _ := strings.Cut(b.Next, "\n")
		if len(b.Blockers) == 0 && b.Verdict == blocker.Stuck && strings.HasPrefix(first, "# wait") {
			r.T.Errorf("%v of %v is stuck, and the next step is to wait: %q", b.Reason, b.Object, b.Next)
		}
		beforeLast, _, _ := strings.Cut(b.Next, "# last resort")
		if strings.Contains(beforeLast, "out-of-service") || strings.Contains(beforeLast, "--force") {
			r.T.Errorf("the first advice of %v of %v is by force: %q", b.Reason, b.Object, b.Next)
		}
		for line := range strings.Lines(b.Next) {
			r.expectDeletesOnce(reader, strings.Fields(strings.TrimPrefix(line, "# ")))
		}
	}
}

// isLeftInGrace reports whether a custom resource has a grace period in its fields and no finalizer: it is removed
// by one more deletion only.
func isLeftInGrace(object *unstructured.Unstructured) bool {
	seconds := object.GetDeletionGracePeriodSeconds()
	return object.GetKind() == widget.kind && seconds != nil && *seconds > 0 && len(object.GetFinalizers()) == 0
}

// expectDeletesOnce wants a command that deletes an object to name one that is not being deleted. By
// force a pod is deleted once more.
func (r *place) expectDeletesOnce(reader *cluster.Reader, words []string) {
	r.T.Helper()
	if len(words) < 4 || words[0] != "kubectl" || words[1] != "delete" || strings.HasPrefix(words[2], "-") ||
		slices.Contains(words, "--force") {
		return
	}
	namespace := ""
	if i := slices.Index(words, "-n"); i > 0 && i+1 < len(words) {
		namespace = words[i+1]
	}
	refs, err := reference.NewResolver(reader, namespace, true).Words([]string{words[2] + "/" + words[3]})
	r.Must(err, "find what "+strings.Join(words, " ")+" deletes")
	object, presence, _ := reader.Live(r.Ctx, refs[0])
	if presence == cluster.Present && object.GetDeletionTimestamp() != nil && !isLeftInGrace(object) {
		r.T.Errorf("the step %q deletes what is being deleted", strings.Join(words, " "))
	}
}
