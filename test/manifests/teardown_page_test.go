package manifests

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// teardownPage describes the teardown of a cluster to administrators.
var teardownPage = filepath.Join("docs", "teardown.md")

// anotherID is the ID of a cluster that is not there.
const anotherID = "00000000-0000-4000-8000-000000000000"

// site is a folder in which the scripts of the page are run. Our commands and those that read are real, commands of
// platforms are written to a file.
type site struct {
	*server
	dir, platform string
}

func newSite(t *testing.T, s *server) *site {
	t.Helper()
	here := &site{server: s, dir: t.TempDir(), platform: filepath.Join(t.TempDir(), "platform")}
	config, err := os.ReadFile(s.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"workload.kubeconfig", "bootstrap.kubeconfig", "auth/kubeconfig"} {
		here.write(t, filepath.Join(here.dir, name), string(config), 0o600)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	programs := s.plugins(t)
	record := "#!/bin/sh\necho \"$(basename $0) $*\" >> " + here.platform + "\n"
	for _, name := range []string{"terraform", "clusterctl", "openshift-install", "eksctl", "kops"} {
		here.write(t, filepath.Join(programs, name), record, 0o700)
	}
	here.write(t, filepath.Join(programs, "kubectl"), "#!/bin/sh\ncase \"$2\" in cluster|clusterdeployment|nodepools.*)\n"+
		"echo \"kubectl $*\" >> "+here.platform+"; exit;; esac\n"+asKubectl+"=1 exec "+self+" \"$@\"\n", 0o700)
	return here
}

func (s *site) write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.WriteFile(path, []byte(text), mode)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// sh runs a script, and returns its exit code and output.
func (s *site) sh(t *testing.T, script string) (int, string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "sh", "-c", script)
	command.Dir = s.dir
	command.Env = []string{"KUBECONFIG=" + s.kubeconfig, "HOME=" + s.home, "PATH=" + s.home + ":/usr/bin:/bin"}
	output, err := command.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return command.ProcessState.ExitCode(), string(output)
}

// deletions returns the commands of platforms since the last call.
func (s *site) deletions(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(s.platform)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	_ = os.Remove(s.platform)
	return string(text)
}

// teardownBlocks returns the code blocks of the page in a language, with names that exist here.
func teardownBlocks(t *testing.T, language string) []string {
	t.Helper()
	var found []string
	for _, block := range fencedBlock.FindAllStringSubmatch(guide(t, teardownPage), -1) {
		if block[1] == language {
			found = append(found, sample.Replace(strings.ReplaceAll(block[2], "ADMIN_KUBECONFIG", "admin-kubeconfig")))
		}
	}
	return found
}

// createAdminSecret creates the Secret in which Hive has the kubeconfig of a cluster.
func (s *site) createAdminSecret(t *testing.T) {
	t.Helper()
	config, err := os.ReadFile(s.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client := kubernetes.NewForConfigOrDie(s.config).CoreV1()
	_, err = client.Namespaces().Create(t.Context(), &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "storage"}}, metav1.CreateOptions{})
	if err == nil {
		_, err = client.Secrets("storage").Create(t.Context(), &v1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "admin-kubeconfig"},
			Data: map[string][]byte{"kubeconfig": config}}, metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// The first script stores the ID. With it each other one tears the cluster down before the platform deletes anything;
// with the ID of another cluster the platform deletes nothing.
func TestRecipesDeleteNothingBeforeTheTeardown(t *testing.T) {
	here := newSite(t, startServer(t))
	here.createAdminSecret(t)
	scripts := teardownBlocks(t, "sh")
	if len(scripts) < 9 {
		t.Fatalf("the page has %d scripts", len(scripts))
	}
	stored := filepath.Join(here.dir, "cluster-id")
	if code, output := here.sh(t, scripts[0]); code != 0 {
		t.Fatalf("%s\nends with %d:\n%s", scripts[0], code, output)
	}
	id, err := os.ReadFile(stored)
	if err != nil || len(id) != len(anotherID) {
		t.Fatalf("the ID is %q, %v", id, err)
	}
	for _, script := range scripts[1:] {
		here.write(t, stored, anotherID, 0o600)
		code, output := here.sh(t, script)
		if deleted := here.deletions(t); code != 4 || strings.Contains(deleted, "delete") || strings.Contains(deleted, "destroy") {
			t.Errorf("with another ID\n%s\nends with %d, the platform's commands are %q:\n%s", script, code, deleted, output)
		}
		here.write(t, stored, string(id), 0o600)
		code, output = here.sh(t, script)
		deleted := here.deletions(t)
		if isCI := strings.Contains(script, "report.json"); code != 0 ||
			!isCI && !strings.Contains(deleted, "delete") && !strings.Contains(deleted, "destroy") {
			t.Errorf("%s\nends with %d, the platform's commands are %q:\n%s", script, code, deleted, output)
		}
	}
	testReport(t, filepath.Join(here.dir, "report.json"))
}

// testReport tests the document that the script of CI writes.
func testReport(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var report map[string]any
	if err := json.Unmarshal(text, &report); err != nil || report["phase"] != "Complete" {
		t.Errorf("the report says %v, %v:\n%s", report["phase"], err, text)
	}
	if err := outputSchema(t, "teardown.schema.json").Validate(report); err != nil {
		t.Errorf("the report does not have the schema: %v\n%s", err, text)
	}
}

// localExec is the command of the resource of terraform.
var localExec = regexp.MustCompile(`command = "(.*)"`)

func TestCommandOfTerraformIsRefusedWithAnotherID(t *testing.T) {
	here := newSite(t, startServer(t))
	blocks := teardownBlocks(t, "hcl")
	if len(blocks) != 1 || !strings.Contains(blocks[0], "ignore_changes = [input]") {
		t.Fatalf("the page has %q", blocks)
	}
	command := localExec.FindStringSubmatch(blocks[0])
	if command == nil {
		t.Fatalf("no command in\n%s", blocks[0])
	}
	line := strings.NewReplacer("${self.input.kubeconfig}", here.kubeconfig, "${self.input.id}", anotherID).Replace(command[1])
	if code, output := here.sh(t, line); code != 4 || !strings.Contains(output, "nothing was written") {
		t.Errorf("%s\nends with %d:\n%s", line, code, output)
	}
}

// commandsOfPage returns the commands of the page in blocks without a language.
func commandsOfPage(t *testing.T) []string {
	t.Helper()
	var lines []string
	for _, block := range teardownBlocks(t, "") {
		lines = append(lines, strings.Split(strings.TrimSpace(block), "\n")...)
	}
	return lines
}

func TestCommandsOfTheTeardownPageDoWhatItSays(t *testing.T) {
	here := newSite(t, startServer(t))
	client := kubernetes.NewForConfigOrDie(here.config).CoreV1()
	for _, name := range []string{"shop", "audit"} {
		_, err := client.Namespaces().Create(t.Context(), &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	claim := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "orders"}, Spec: v1.PersistentVolumeClaimSpec{
		AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}, Resources: v1.VolumeResourceRequirements{
			Requests: v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}}}}
	if _, err := client.PersistentVolumeClaims("shop").Create(t.Context(), claim, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	lines := commandsOfPage(t)
	plan := slices.IndexFunc(lines, func(line string) bool { return strings.Contains(line, "--preserve=") })
	label := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, "kubectl label") })
	abort := slices.IndexFunc(lines, func(line string) bool { return strings.HasSuffix(line, "--abort") })
	if plan < 0 || label < 0 || abort < 0 {
		t.Fatalf("the page has %q", lines)
	}
	code, id := here.sh(t, lines[0])
	if code != 0 || len(id) != len(anotherID) {
		t.Fatalf("%s: %d, %s", lines[0], code, id)
	}
	for _, line := range []string{lines[abort], lines[1], lines[label], lines[plan], strings.Replace(lines[2], "ID", id, 1)} {
		if code, output := here.sh(t, line); code != 0 {
			t.Errorf("%s\nends with %d:\n%s", line, code, output)
		}
	}
	left, err := client.PersistentVolumeClaims("shop").Get(t.Context(), "orders", metav1.GetOptions{})
	if err != nil || left.DeletionTimestamp != nil || left.Labels["lifecycle.exeunt.io/preserve"] != "true" {
		t.Errorf("%v, %+v", err, left)
	}
	if code, output := here.sh(t, "kubectl exeunt teardown remove"); code != 0 {
		t.Errorf("remove ends with %d:\n%s", code, output)
	}
}
