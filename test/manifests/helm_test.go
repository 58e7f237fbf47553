package manifests

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	helmcmd "helm.sh/helm/v4/pkg/cmd"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/exeunt-io/exeunt/deploy"
)

// asHelm is the environment variable that makes the test binary run as helm.
const asHelm = "EXEUNT_TEST_AS_HELM"

// runHelm is the main function of helm.
func runHelm() {
	command, err := helmcmd.NewRootCmd(os.Stdout, os.Args[1:], helmcmd.SetupLogging)
	if err == nil {
		err = command.Execute()
	}
	if err != nil {
		os.Exit(1)
	}
}

// helm runs a command in our namespace.
func (s *server) helm(t *testing.T, words ...string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), self, append(words, "--namespace="+deploy.Namespace)...)
	command.Env = []string{asHelm + "=1", "KUBECONFIG=" + s.kubeconfig, "HOME=" + s.home}
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("helm %s: %v: %s", strings.Join(words, " "), err, output)
	}
}

// install installs or upgrades the release with the values only, without pods: no kubelet runs here.
func (s *server) install(t *testing.T, given ...string) {
	t.Helper()
	none := "registry=" + registry + ",pvController.enabled=false,provisioner.enabled=false,"
	s.helm(t, "upgrade", "--install", "exeunt", filepath.Join(deployment, "helm", "exeunt"), "--create-namespace",
		"--set="+none+strings.Join(given, ","))
}

// asKubelet ends the Job of the uninstall, as its pod would: it runs the command of its container with its rights.
func (s *server) asKubelet(ctx context.Context, t *testing.T, client kubernetes.Interface) error {
	t.Helper()
	jobs := client.BatchV1().Jobs(deploy.Namespace)
	created, err := jobs.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	defer created.Stop()
	for event := range created.ResultChan() {
		job, is := event.Object.(*batchv1.Job)
		if !is {
			continue
		}
		pod := job.Spec.Template.Spec
		if _, err := s.kubectl(t, "kubectl exeunt "+strings.Join(pod.Containers[0].Args, " ")+" --as=system:serviceaccount:"+
			job.Namespace+":"+pod.ServiceAccountName+" --as-group=system:authenticated"); err != nil {
			return err
		}
		now := metav1.Now()
		condition := func(of batchv1.JobConditionType) batchv1.JobCondition {
			return batchv1.JobCondition{Type: of, Status: v1.ConditionTrue, LastTransitionTime: now, LastProbeTime: now}
		}
		job.Status = batchv1.JobStatus{Succeeded: 1, StartTime: &now, CompletionTime: &now, Conditions: []batchv1.JobCondition{
			condition(batchv1.JobSuccessCriteriaMet), condition(batchv1.JobComplete)}}
		_, err := jobs.UpdateStatus(ctx, job, metav1.UpdateOptions{})
		return err
	}
	return errors.New("no Job was created")
}
