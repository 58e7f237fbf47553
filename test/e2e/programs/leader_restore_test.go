package programs

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// container runs a program in a pod, and starts it again when it ends.
type container struct {
	program string
	first   *sandbox.Process
	// ended is when the first process ended, once done is closed.
	ended time.Time
	done  chan struct{}
}

// startContainer starts one of two replicas. The processes of one pod have the same identity.
func startContainer(s *harness.Session, program string, number int) *container {
	s.T.Helper()
	c := &container{program: program, done: make(chan struct{})}
	var err error
	c.first, err = startProcess(s, program, number, 1)
	s.Must(err, "start "+program)
	var running sync.WaitGroup
	running.Go(func() {
		process := c.first
		for generation := 2; ; generation++ {
			select {
			case <-process.Done():
			case <-s.Ctx.Done():
				_ = process.Kill()
				return
			}
			if generation == 2 {
				c.ended = time.Now()
				close(c.done)
			}
			if process, err = startProcess(s, program, number, generation); err != nil {
				return // the test has ended
			}
		}
	})
	s.T.Cleanup(running.Wait)
	return c
}

// startProcess starts a process of the replica: the first, or a later one.
func startProcess(s *harness.Session, program string, number, generation int) (*sandbox.Process, error) {
	how := sandbox.Controller{
		Name: fmt.Sprintf("%s-%d.%d", program, number, generation), HonorReclaimPolicy: true,
		Env: []string{fmt.Sprintf("POD_UID=%s-%d", program, number), "POD_NAMESPACE=" + deploy.Namespace},
	}
	flags := func(prefix string) []string {
		return []string{"--" + prefix + "-lease-duration=30s", "--" + prefix + "-renew-deadline=25s",
			"--" + prefix + "-retry-period=500ms"}
	}
	switch program {
	case deploy.PVController:
		how.Args = append(flags("leader-elect"), "--leader-elect=true")
		return s.Plane.StartPVController(s.Ctx, how)
	case deploy.Provisioner:
		how.Args = append(flags("leader-election"), "--leader-election")
		return s.Plane.StartProvisioner(s.Ctx, s.Driver, how)
	}
	how.Args = flags("leader-elect")
	return s.Plane.StartGarbageCollector(s.Ctx, how)
}

// leads reports whether the first process has acquired its lease.
func (c *container) leads(s *harness.Session) bool {
	s.T.Helper()
	return s.LogContains(c.first, "uccessfully acquired lease")
}

// What the processes remember is wrong after the restore: a reference was removed, and a claim was bound, since the backup.
func TestRestoreOfEtcdEndsAllProcesses(t *testing.T) {
	t.Parallel()
	for name, bump := range map[string]uint64{"same revision": 0, "raised revision": 1_000_000_000} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := harness.Own(t, harness.Setup{NoPrograms: true, Restarts: true}, harness.Within(2*harness.Timeout))
			containers := startContainers(s)
			s.CreateClaim("before", harness.DeleteClass)
			before := s.AwaitBound("before")
			owner := createOwned(s)
			copied := filepath.Join(s.Dir, "copy")
			s.Must(s.Plane.Restart(s.Ctx, func() error { return s.Plane.SaveEtcd(copied) }), "copy etcd")

			s.CreateClaim("after", harness.DeleteClass)
			s.AwaitBound("after")
			patchConfigMap(s, "kept", `{"metadata":{"ownerReferences":null}}`)
			awaitCollected(s, "seen-by-the-collector")
			awaitStandbys(s, time.Now())
			for _, c := range containers {
				if err := c.first.Err(); err != nil {
					t.Errorf("the restart of the API server ended %s: %v", c.first.Name(), err)
				}
			}
			var restored time.Time
			s.Must(s.Plane.Restart(s.Ctx, func() error {
				restored = time.Now()
				return s.Plane.RestoreEtcd(s.Ctx, copied, bump)
			}), "restore etcd")
			work(s, owner)
			expectRestarts(s, containers, restored)
			expectWorkDone(s, before)
		})
	}
}

func startContainers(s *harness.Session) []*container {
	s.T.Helper()
	s.Must(sandbox.Apply(s.Ctx, s.Plane.RESTConfig(), deploy.GarbageCollector), "apply manifests of the collector")
	var containers []*container
	for number := range 2 {
		for _, program := range []string{deploy.PVController, deploy.Provisioner, deploy.GarbageCollectorAccount} {
			c := startContainer(s, program, number)
			containers = append(containers, c)
			if number == 0 {
				s.Until(program+" leads", func() bool { return c.leads(s) })
			} else {
				s.AwaitLog(c.first, "ttempting to acquire leader lease")
			}
		}
	}
	return containers
}

// createOwned creates a dependent, and waits until the collector has seen it. It returns the owner.
func createOwned(s *harness.Session) *v1.ConfigMap {
	s.T.Helper()
	owner, err := s.Client.CoreV1().ConfigMaps(s.Namespace).Create(s.Ctx,
		&v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}, metav1.CreateOptions{})
	s.Must(err, "create owner")
	createConfigMap(s, "kept", owner.Name, owner.UID)
	awaitCollected(s, "garbage")
	return owner
}

func createConfigMap(s *harness.Session, name, owner string, uid types.UID) {
	s.T.Helper()
	object := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name,
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner, UID: uid}}}}
	_, err := s.Client.CoreV1().ConfigMaps(s.Namespace).Create(s.Ctx, object, metav1.CreateOptions{})
	s.Must(err, "create "+name)
}

// awaitCollected creates a dependent of an absent owner, and waits until it is collected: the collector has seen everything
// of the kind that was written before.
func awaitCollected(s *harness.Session, name string) {
	s.T.Helper()
	createConfigMap(s, name, "absent", "absent")
	s.Until(name+" is collected", func() bool {
		list, err := s.Client.CoreV1().ConfigMaps(s.Namespace).List(s.Ctx,
			metav1.ListOptions{FieldSelector: "metadata.name=" + name})
		return err == nil && len(list.Items) == 0
	})
}

// awaitStandbys waits until each program has read its Lease twice since the time: the standby has seen a renewal that is newer
// than the copy.
func awaitStandbys(s *harness.Session, since time.Time) {
	s.T.Helper()
	s.Until("the standbys have read their Leases", func() bool {
		reads := map[string]int{}
		for _, event := range s.Requests() {
			if event.Verb == "get" && event.Resource == "leases" && event.Code == http.StatusOK && event.Time.After(since) {
				reads[event.User]++
			}
		}
		return len(reads) == 3 && slices.Min(slices.Collect(maps.Values(reads))) >= 2
	})
}

func patchConfigMap(s *harness.Session, name, patch string) {
	s.T.Helper()
	_, err := s.Client.CoreV1().ConfigMaps(s.Namespace).Patch(s.Ctx, name, types.MergePatchType, []byte(patch),
		metav1.PatchOptions{})
	s.Must(err, "patch "+name)
}

// work gives every program something to do at once.
func work(s *harness.Session, owner *v1.ConfigMap) {
	s.T.Helper()
	orphan := metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationOrphan),
		Preconditions: metav1.NewUIDPreconditions(string(owner.UID))}
	s.Must(s.Client.CoreV1().ConfigMaps(s.Namespace).Delete(s.Ctx, owner.Name, orphan), "delete owner")
	s.DeleteClaim("before")
	for i := range 10 {
		s.CreateClaim(fmt.Sprintf("new-%d", i), harness.DeleteClass)
	}
}

// expectRestarts checks that all processes of before the restore end because of it, and that their leaders have written
// nothing since but events.
func expectRestarts(s *harness.Session, containers []*container, restored time.Time) {
	s.T.Helper()
	for _, c := range containers {
		select {
		case <-c.done:
		case <-s.Ctx.Done():
			text, _ := os.ReadFile(c.first.LogFile())
			s.T.Fatalf("%s goes on after the restore: %s", c.first.Name(), text)
		}
		if !s.LogContains(c.first, "etcd was restored from a backup") {
			s.T.Errorf("%s ended for another reason: %v", c.first.Name(), c.first.Err())
		}
		s.T.Logf("%s ended %s after the restore began", c.first.Name(), c.ended.Sub(restored).Round(time.Millisecond))
	}
	for _, event := range s.Requests() {
		if !event.Writes() || event.Resource == "events" || event.Time.Before(restored) || event.Code >= 400 {
			continue
		}
		i := slices.IndexFunc(containers,
			func(c *container) bool { return strings.HasSuffix(event.User, ":"+c.program) && c.leads(s) })
		if leader := containers[i]; event.Time.Before(leader.ended) {
			s.T.Errorf("%s wrote %s %s %s, %s before it ended", leader.first.Name(), event.Verb, event.Resource, event.Name,
				leader.ended.Sub(event.Time))
		}
	}
}

// expectWorkDone checks that the next processes do the work with what the restored API server says.
func expectWorkDone(s *harness.Session, before *v1.PersistentVolume) {
	s.T.Helper()
	for i := range 10 {
		s.AwaitBound(fmt.Sprintf("new-%d", i))
	}
	s.AwaitVolumeGone(before.Name)
	if s.IsStored(harness.Handle(before)) {
		s.T.Error("the disk of the deleted claim exists")
	}
	s.Until("the dependent is an orphan", func() bool {
		kept, err := s.Client.CoreV1().ConfigMaps(s.Namespace).Get(s.Ctx, "kept", metav1.GetOptions{})
		s.Must(err, "read the dependent, which must not be deleted")
		return len(kept.OwnerReferences) == 0
	})
}
