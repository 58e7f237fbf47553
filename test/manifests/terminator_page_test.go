package manifests

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/pkg/termination"
)

// terminatorPage describes node-terminator to administrators.
var terminatorPage = filepath.Join("docs", "node-termination.md")

// terminatorLine returns the only command of the page that contains the text.
func terminatorLine(t *testing.T, contains string) string {
	t.Helper()
	var found []string
	for _, match := range kubectlLine.FindAllStringSubmatch(guide(t, terminatorPage), -1) {
		if line := strings.TrimSpace(sample.Replace(match[1])); strings.Contains(line, contains) &&
			!slices.Contains(found, line) {
			found = append(found, line)
		}
	}
	if len(found) != 1 {
		t.Fatalf("the page has %d commands with %q: %q", len(found), contains, found)
	}
	return found[0]
}

// runTerminatorLine runs the command of the page that contains the text.
func (s *server) runTerminatorLine(t *testing.T, contains string) string {
	t.Helper()
	output, err := s.kubectl(t, terminatorLine(t, contains))
	if err != nil {
		t.Error(err)
	}
	return output
}

// No program runs: the finalizer keeps the Node, as it does while the program terminates the Node.
func TestCommandsOfTheTerminatorPageDoWhatItSays(t *testing.T) {
	server := startServer(t)
	client := kubernetes.NewForConfigOrDie(server.config).CoreV1()
	node, err := client.Nodes().Create(t.Context(), &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "name",
		Finalizers: []string{termination.Finalizer}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	server.prepareNamespace(t, find(t, kustomized(t, "node-terminator"), "Deployment", "node-terminator"))
	report := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "node-termination-" + string(node.UID),
		Labels: map[string]string{termination.ReportLabel: "name"}}, Data: map[string]string{termination.ReportKey: `{"node":"name"}`}}
	if _, err := client.ConfigMaps(deploy.Namespace).Create(t.Context(), report, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	server.runTerminatorLine(t, "kubectl label node")
	server.runTerminatorLine(t, "kubectl annotate node")
	server.runTerminatorLine(t, "kubectl taint nodes")
	server.runTerminatorLine(t, "kubectl get events --field-selector involvedObject.kind=Node,involvedObject.name")
	if output := server.runTerminatorLine(t, "get configmaps -l"); output != `{"node":"name"}` {
		t.Errorf("the report is %q", output)
	}
	server.runTerminatorLine(t, "kubectl drain name")
	server.runTerminatorLine(t, "kubectl delete node name")
	left, err := client.Nodes().Get(t.Context(), "name", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	period, served, err := termination.PeriodOf(left)
	if ours, others := termination.OutOfService(left); !served || err != nil || period.String() != "30m0s" ||
		left.DeletionTimestamp == nil || left.Annotations[termination.TimestampAnnotation] == "" || ours || !others {
		t.Errorf("period %v, served: %t, %v; the Node is %+v", period, served, err, left)
	}
	server.runTerminatorLine(t, "kubectl patch node")
	if _, err := client.Nodes().Get(t.Context(), "name", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the Node is still there: %v", err)
	}
}

func TestForecastOfTheTerminatorPageNeedsNothingInstalled(t *testing.T) {
	server := startServer(t)
	client := kubernetes.NewForConfigOrDie(server.config).CoreV1()
	if _, err := client.Nodes().Create(t.Context(), &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "name"}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if output := server.runTerminatorLine(t, "forecast node/name --grace-period=30m"); !strings.Contains(output, "name") {
		t.Errorf("the forecast says %q", output)
	}
}

// Karpenter's CRD requires the field requirements, which ours does not.
func TestDocumentedNodeClaimIsAccepted(t *testing.T) {
	claims := nodeClaims(t)
	documented := 0
	for _, block := range yamlBlock.FindAllStringSubmatch(guide(t, terminatorPage), -1) {
		for _, object := range objectsIn(t, terminatorPage, []byte(block[2])) {
			documented++
			created, err := claims.Create(t.Context(), object, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
			if err != nil {
				t.Fatal(err)
			}
			spec := created.Object["spec"].(map[string]any)
			class := spec["nodeClassRef"].(map[string]any)
			if spec["requirements"] == nil || class["group"] != termination.ClaimGroup {
				t.Errorf("the spec is %v", spec)
			}
		}
	}
	if documented != 1 {
		t.Errorf("the page has %d objects", documented)
	}
}
