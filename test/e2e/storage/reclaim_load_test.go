package storage

import (
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/pkg/csimock"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// claimCount is the number of claims.
const claimCount = 200

func TestManyVolumesAreEachDeletedOnce(t *testing.T) {
	s := harness.Join(t, harness.Setup{})
	for i := range claimCount {
		s.CreateClaim(fmt.Sprintf("claim-%d", i), harness.DeleteClass)
	}
	volumes := volumesOf(s, s.AwaitManyBound(claimCount))
	for _, volume := range volumes {
		s.DeleteVolume(volume.Name)
	}
	s.Must(s.Client.CoreV1().PersistentVolumeClaims(s.Namespace).
		DeleteCollection(s.Ctx, metav1.DeleteOptions{}, metav1.ListOptions{}), "delete claims")
	s.AwaitManyGone(namesOf(volumes))
	expectOneCallEach(s, volumes)
	expectFewConflicts(s, volumes)
}

func volumesOf(s *harness.Session, names []string) []*v1.PersistentVolume {
	s.T.Helper()
	var volumes []*v1.PersistentVolume
	for _, name := range names {
		volume, err := s.Client.CoreV1().PersistentVolumes().Get(s.Ctx, name, metav1.GetOptions{})
		s.Must(err, "read volume")
		volumes = append(volumes, volume)
	}
	return volumes
}

func namesOf(volumes []*v1.PersistentVolume) []string {
	var names []string
	for _, volume := range volumes {
		names = append(names, volume.Name)
	}
	return names
}

// expectOneCallEach checks the driver's log: one call of each method per volume.
func expectOneCallEach(s *harness.Session, volumes []*v1.PersistentVolume) {
	s.T.Helper()
	all, err := csimock.ReadCalls(s.Driver.CallLog)
	s.Must(err, "read call log")
	created, deleted := map[string]int{}, map[string]int{}
	for _, call := range all {
		switch call.Method {
		case "CreateVolume":
			created[call.Volume]++
		case "DeleteVolume":
			deleted[call.Volume]++
		}
	}
	for _, volume := range volumes {
		if h := harness.Handle(volume); created[h] != 1 || deleted[h] != 1 {
			s.T.Errorf("%s: CreateVolume was called %d times, DeleteVolume %d times, want once each", h, created[h], deleted[h])
		}
	}
}

// expectFewConflicts checks in the audit log that a write with a conflict is retried from
// a new read, not repeated.
func expectFewConflicts(s *harness.Session, volumes []*v1.PersistentVolume) {
	s.T.Helper()
	own := map[string]bool{}
	for _, volume := range volumes {
		own[volume.Name] = true
	}
	events, err := sandbox.ReadAudit(s.Plane.AuditLog)
	s.Must(err, "read audit log")
	refused, writes := map[string]int{}, 0
	for _, event := range events {
		ours := strings.HasPrefix(event.User, "system:serviceaccount:"+deploy.Namespace) && event.Writes()
		if !ours || !own[event.Name] && event.Namespace != s.Namespace || event.Resource == "events" {
			continue
		}
		writes++
		if event.Code == 409 || event.Code == 422 {
			refused[event.Resource+"/"+event.Name]++
		}
	}
	for object, times := range refused {
		if times > 2 {
			s.T.Errorf("%s: %d writes had a conflict", object, times)
		}
	}
	s.T.Logf("%d writes for %d volumes, %d objects had a conflict", writes, len(volumes), len(refused))
	if writes > 9*len(volumes) {
		s.T.Errorf("%d writes for %d volumes, want at most 9 each", writes, len(volumes))
	}
}
