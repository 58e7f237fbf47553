package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// grantReading lets the user get and list a resource of the core group.
func (l *whyServer) grantReading(user, resource string) {
	l.t.Helper()
	_, err := l.client.RbacV1().ClusterRoles().Create(l.ctx, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: resource + "-reader"},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{resource},
			Verbs: []string{"get", "list"}}},
	}, metav1.CreateOptions{})
	l.must(err, "create role")
	l.grant(user, resource+"-reader")
}

func TestUserWithoutRightsGetsSentence(t *testing.T) {
	l := open(t, current)
	l.createConfig("held", "example.com/held")
	stdout, stderr, code := l.run("why", "cm/held", "-n", "lab", "--as", "nobody")
	if want := `exeunt: read ConfigMap held: no right to get configmaps in namespace lab; grant the rule {apiGroups: [""], resources: [configmaps], verbs: [get]}`; strings.TrimSpace(stderr) != want || stdout != "" || code != 1 {
		t.Errorf("printed %q and %q with exit code %d, want %q and 1", stdout, stderr, code, want)
	}
	stdout, _, code = l.run("why", "--all", "--as", "nobody")
	if !strings.HasPrefix(stdout, "nothing that was seen waits for its deletion\nincomplete: no right to list ") ||
		code != 2 {
		t.Errorf("why --all printed %q with exit code %d, want what was not seen and 2", stdout, code)
	}
}

// What was not seen is told, and the object is never called stuck.
func TestUserWithOneRightIsToldWhatIsUnseen(t *testing.T) {
	l := open(t, current)
	l.createConfig("held", "external-provisioner.volume.kubernetes.io/finalizer")
	l.grantReading("reader", "configmaps")
	report, code := l.why("cm/held", "--as", "reader")
	if report.Verdict != blocker.Unknown || code != 2 || len(report.Incomplete) == 0 {
		t.Errorf("the report is %+v with exit code %d, want unknown and incomplete", report, code)
	}
	for _, sentence := range report.Incomplete {
		if !strings.HasPrefix(sentence, "no right to ") || !strings.Contains(sentence, "; grant the rule {apiGroups: ") {
			t.Errorf("incomplete: %q, want the missing right and its rule", sentence)
		}
	}
}

func TestViewerMayReadWhatWhyReads(t *testing.T) {
	l := open(t, current)
	l.must(sandbox.Apply(l.ctx, l.plane.RESTConfig(), deploy.Viewer), "apply roles")
	l.grant("viewer", "exeunt-viewer")
	l.grant("everything", "exeunt-viewer-all")
	l.furnish()
	for object, want := range answers {
		if strings.HasPrefix(object, "cm/") || strings.HasPrefix(object, "ns/") { // which exeunt-viewer-all reads
			continue
		}
		report, _ := l.why(object, "--as", "viewer")
		if len(report.Incomplete) > 0 || report.Verdict != want.verdict {
			t.Errorf("a viewer sees of %s %+v, want %v and nothing incomplete", object, report, want.verdict)
		}
	}
	if stdout, stderr, code := l.run("why", "--all", "--older-than=0s", "--as", "everything"); strings.Contains(stdout,
		"incomplete:") || stderr != "" || code != 2 {
		t.Errorf("why --all printed %q and %q with exit code %d, want nothing incomplete", stdout, stderr, code)
	}
}

func TestSeveralObjectsAndFiles(t *testing.T) {
	l := open(t, current)
	l.createConfig("held", "example.com/held")
	file := filepath.Join(t.TempDir(), "app.yaml")
	text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: held, namespace: lab}\n---\ncm/other\n"
	l.must(os.WriteFile(file, []byte(text), 0o600), "write file")
	want := []string{"ConfigMap lab/held", "ConfigMap lab/other"}
	for _, args := range [][]string{{"cm/held", "configmap/other"}, {"configmaps", "held", "other"}, {"-f", file}} {
		if names, code := l.all(append([]string{"-n", "lab"}, args...)...); !slices.Equal(names, want) || code != 2 {
			t.Errorf("why %v explains %q with exit code %d, want %q and 2", args, names, code, want)
		}
	}
	if stdout, _, _ := l.run("why", "-n", "lab", "-o", "name", "cm/held", "cm/other"); stdout != "configmap/held\n" {
		t.Errorf("the names of what waits are %q", stdout)
	}
	_, stderr, code := l.run("why", "confimap/held")
	if want := `exeunt: the API server serves no kind "confimap", did you mean configmap?`; strings.TrimSpace(stderr) != want || code != 1 {
		t.Errorf("an unknown kind printed %q with exit code %d, want %q and 1", stderr, code, want)
	}
}
