package situations

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/why"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// mixed returns the situations of several blockers, of the watch and of the survey.
func mixed() []situation {
	return []situation{
		{
			number: "69", name: "one of two holders lives, and the other is gone", alone: true,
			build: func(r *place) []string {
				r.createHolders()
				r.createCustom(r.createCRD(widget.group, widget.kind), widget.kind, "object", "kueue.x-k8s.io/resource-in-use",
					"operator.redpanda.com/finalizer")
				return r.deleteCustom(widget.resource(), "object")
			},
			verdict: blocker.Stuck, roots: []blocker.Reason{blocker.ControllerActs, blocker.ControllerGone},
			next: "scale deployment/redpanda --replicas=1",
			step: widget.finish,
		},
		{
			number: "70", name: "the StatefulSet creates the pod again, with --watch",
			verdict: blocker.None, roots: []blocker.Reason{blocker.Recreated}, next: "describe statefulset db",
			show: (*place).showRecreatedPod,
		},
		{
			number: "d", name: "the local clock is an hour wrong",
			verdict: blocker.Waiting, roots: []blocker.Reason{blocker.ControllerActs},
			show: (*place).showWrongClock,
		},
		{
			number: "h", name: "5,000 objects are deleted at once",
			verdict: blocker.Waiting, roots: []blocker.Reason{blocker.ControllerActs},
			show: (*place).showMany,
		},
	}
}

// showRecreatedPod plays the StatefulSet: it creates the pod again once it is gone.
func (r *place) showRecreatedPod() {
	r.T.Helper()
	r.createNode(r.Namespace, v1.ConditionTrue, 0)
	r.createOwnedPod()
	r.Must(r.Client.CoreV1().Pods(r.Namespace).Delete(r.Ctx, "db-0",
		metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](600)}), "delete pod")
	command := exec.CommandContext(r.Ctx, filepath.Join(harness.Binaries().Dir, "exeunt"), "why", "pod/db-0", "--watch",
		"-o", "json", "-n", r.Namespace, "--kubeconfig", r.Plane.AdminKubeconfig)
	out, err := command.StdoutPipe()
	r.Must(err, "connect to the output")
	r.Must(command.Start(), "start exeunt")
	reports := json.NewDecoder(out)
	r.expectReport(reports, blocker.Waiting, blocker.GracePeriod)
	r.forcePod("db-0")
	r.createOwnedPod()
	var gone blocker.Report
	if err := reports.Decode(&gone); err != nil || gone.Verdict != blocker.Gone {
		r.T.Errorf("the second report is %+v, %v, want gone", gone, err)
	}
	again := r.expectReport(reports, blocker.None, blocker.Recreated)
	if again.Blockers[0].Holder != "StatefulSet db" || !strings.Contains(again.Blockers[0].Next,
		"describe statefulset db") || again.Object.UID == gone.Object.UID {
		r.T.Errorf("the report is %+v, want StatefulSet db and another UID", again)
	}
	r.Must(command.Wait(), "watch")
}

// expectReport reads the next report.
func (r *place) expectReport(reports *json.Decoder, verdict blocker.Verdict, reason blocker.Reason) blocker.Report {
	r.T.Helper()
	var report blocker.Report
	r.Must(reports.Decode(&report), "read report")
	if report.Verdict != verdict || len(report.Blockers) != 1 || report.Blockers[0].Reason != reason {
		r.T.Fatalf("the report is %+v, want %v, %v", report, verdict, reason)
	}
	return report
}

// createOwnedPod creates the pod db-0 of a StatefulSet.
func (r *place) createOwnedPod() {
	r.T.Helper()
	_, err := r.Client.CoreV1().Pods(r.Namespace).Create(r.Ctx, &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "db-0", OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "db", UID: "1", Controller: ptr.To(true)},
		}},
		Spec: v1.PodSpec{NodeName: r.Namespace, Containers: []v1.Container{{Name: "main", Image: "image"}}},
	}, metav1.CreateOptions{})
	r.Must(err, "create pod")
}

// showWrongClock explains the object on machines whose clocks are an hour wrong. Its
// controller was seen by its Lease only, which expires after 15 seconds.
func (r *place) showWrongClock() {
	r.T.Helper()
	r.createCustom(r.createCRD(widget.group, widget.kind), widget.kind, "object",
		"situations.secrets.hashicorp.com/finalizer")
	r.deleteCustom(widget.resource(), "object")
	lease := r.createLease(r.Namespace, "b0d477c0.hashicorp.com", "outside_1", 0, 15*time.Second)
	for _, shift := range []time.Duration{-time.Hour, 0, time.Hour} {
		reader, err := cluster.NewReaderWithClock(r.Plane.RESTConfig(), func() time.Time { return time.Now().Add(shift) })
		r.Must(err, "connect")
		now := metav1.NowMicro()
		lease.Spec.RenewTime = &now
		lease, err = r.Client.CoordinationV1().Leases(r.Namespace).Update(r.Ctx, lease, metav1.UpdateOptions{})
		r.Must(err, "renew Lease")
		report, err := why.NewExplorer(reader, cluster.Commands{}, false).Explain(r.Ctx, cluster.Ref{
			Resource: widget.resource(), Kind: widget.kind, Namespace: r.Namespace, Name: "object",
		})
		r.Must(err, "explain")
		if report.Verdict != blocker.Waiting || report.Blockers[0].Reason != blocker.ControllerActs {
			r.T.Errorf("with a clock that is %v ahead the report is %+v, want waiting, ControllerActs", shift, report)
		}
	}
	widget.finish(r)
}

// many is the number of objects that are deleted at once.
const many = 5000

// showMany deletes 5,000 objects whose controller lives, and lists what waits before,
// while and after the controller removes its finalizer.
func (r *place) showMany() {
	r.T.Helper()
	r = &place{Session: harness.NewSession(r.T, r.Cluster, harness.Within(5*harness.Timeout))}
	r.createDeployment(r.Namespace, "kueue", "registry.example/kueue/kueue:v0.12", 1, 1)
	configs := r.Client.CoreV1().ConfigMaps(r.Namespace)
	r.eachOfMany(func(name string) error {
		_, err := configs.Create(r.Ctx,
			&v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{"kueue.x-k8s.io/resource-in-use"}}},
			metav1.CreateOptions{})
		return err
	})
	r.Must(configs.DeleteCollection(r.Ctx, metav1.DeleteOptions{}, metav1.ListOptions{}), "delete all")
	if young := r.survey(); len(young) != 0 {
		r.T.Errorf("%d objects that were deleted just now are reported", len(young))
	}
	if found := r.survey("--older-than=0s"); len(found) != many {
		r.T.Errorf("%d objects wait, want %d", len(found), many)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.eachOfMany(func(name string) error {
			_, err := configs.Patch(r.Ctx, name, "application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`),
				metav1.PatchOptions{})
			return err
		})
	}()
	r.survey("--older-than=0s")
	<-done
	if left := r.survey("--older-than=0s"); len(left) != 0 {
		r.T.Errorf("%d objects are reported, and all are gone", len(left))
	}
}

// eachOfMany runs the request for each object of the many, eight at a time.
func (r *place) eachOfMany(request func(name string) error) {
	r.T.Helper()
	failures := make(chan error, 8)
	for worker := range 8 {
		go func() {
			var failed error
			for i := worker; i < many && failed == nil; i += 8 {
				failed = request(fmt.Sprintf("one-of-many-%d", i))
			}
			failures <- failed
		}()
	}
	for range 8 {
		if err := <-failures; err != nil {
			r.T.Errorf("request: %v", err)
		}
	}
}

// survey returns what waits in the situation's namespace. Nothing may be called stuck, nor be
// explained more than a thousand times.
func (r *place) survey(args ...string) []blocker.Report {
	r.T.Helper()
	stdout, stderr, code := r.run(append([]string{"why", "--all", "-o", "json", "-n", r.Namespace}, args...)...)
	var survey struct{ Items []blocker.Report }
	if err := json.NewDecoder(bytes.NewBufferString(stdout)).Decode(&survey); err != nil || stderr != "" || code > 2 {
		r.T.Errorf("why --all printed %.200q and %q with exit code %d: %v", stdout, stderr, code, err)
	}
	explained := 0
	for _, item := range survey.Items {
		if item.Verdict == blocker.Stuck {
			r.T.Errorf("a healthy object is called stuck: %+v", item)
		}
		if item.Verdict != blocker.Unknown { // the rest has the cause of a sample, which may be another one
			explained++
		}
	}
	if explained > 1000 {
		r.T.Errorf("%d objects were explained, want at most 1000", explained)
	}
	return survey.Items
}
