package storage

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// recreations is how often claim and volume of one name are created and deleted.
const recreations = 100

func TestRepeatedlyRecreatedPairCostsBoundedRequests(t *testing.T) {
	s := harness.Join(t, harness.Setup{}, harness.Within(2*harness.Timeout))
	volume := s.Namespace + "-recreated"
	for range recreations {
		createPair(s, volume)
		deletePair(s, volume)
	}
	createPair(s, volume)
	bound := s.AwaitBound("recreated")
	if bound.Name != volume {
		t.Errorf("the claim is bound to %s, want %s", bound.Name, volume)
	}
	s.PassQueues()
	mine := func(e sandbox.Event) bool {
		return e.Name == volume || e.Namespace == s.Namespace && e.Name == "recreated"
	}
	expectRequests(s, mine, 12*(recreations+1))
	before := s.CountRequests(mine)
	s.PassQueues()
	if after := s.CountRequests(mine); after != before {
		t.Errorf("%d requests for a bound pair", after-before)
	}
}

// createPair creates a claim and a volume that name each other. Earlier objects of the
// same names may still be Terminating.
func createPair(s *harness.Session, volume string) {
	s.T.Helper()
	for {
		_, err := s.Client.CoreV1().PersistentVolumes().Create(s.Ctx,
			s.NewVolume("recreated", v1.PersistentVolumeReclaimRetain, func(v *v1.PersistentVolume) {
				v.Spec.ClaimRef = &v1.ObjectReference{Namespace: s.Namespace, Name: "recreated"}
			}), metav1.CreateOptions{})
		if !apierrors.IsAlreadyExists(err) {
			s.Must(err, "create volume")
			break
		}
		s.AwaitVolumeGone(volume)
	}
	for {
		_, err := s.Client.CoreV1().PersistentVolumeClaims(s.Namespace).
			Create(s.Ctx, s.NewClaim("recreated", s.Namespace, func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeName = volume }),
				metav1.CreateOptions{})
		if !apierrors.IsAlreadyExists(err) {
			s.Must(err, "create claim")
			return
		}
		s.AwaitClaimGone("recreated")
	}
}

// deletePair deletes both.
func deletePair(s *harness.Session, volume string) {
	s.T.Helper()
	s.DeleteVolume(volume)
	s.DeleteClaim("recreated")
}

// expectRequests checks that our programs have sent at most so many such requests.
func expectRequests(s *harness.Session, such func(sandbox.Event) bool, most int) {
	s.T.Helper()
	got := s.CountRequests(such)
	s.T.Logf("%d requests, of at most %d", got, most)
	if got > most {
		s.T.Errorf("%d requests, want at most %d", got, most)
	}
}

// invalidPair is a pair of objects that the API server accepts and that cannot be bound.
type invalidPair struct {
	claim  func(*v1.PersistentVolumeClaim)
	volume func(*v1.PersistentVolume)
	// event is the reason of the event about the claim, "" if upstream reports none
	// either; says is part of the message.
	event, says string
}

var invalidPairs = map[string]invalidPair{
	"volume of one byte": {
		volume: withSize("1"), claim: func(*v1.PersistentVolumeClaim) {}, event: "ProvisioningFailed", says: "not found"},
	"claim names volume of one byte": {
		volume: withSize("1"), claim: names("fault"), event: "VolumeMismatch", says: "too small"},
	"largest possible claim": {
		volume: withSize("1Mi"), claim: asks("9223372036854775807"), event: "ProvisioningFailed", says: "not found"},
	"claim beyond 64 bits": {
		volume: withSize("1e30"), claim: asks("1e31"), event: "ProvisioningFailed", says: "not found"},
	"claim names itself as volume": {
		volume: withSize("1Mi"), claim: func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeName = c.Name }},
	"claim names volume of another claim": {
		volume: refersTo("another"), claim: names("fault"), event: "FailedBinding", says: "another"},
	"volume refers to another UID": {
		volume: refersTo("claim", "of-another-life"), claim: names("fault"), event: "FailedBinding", says: "claim"},
	"volume mode differs from claim": {
		volume: func(v *v1.PersistentVolume) {
			block := v1.PersistentVolumeBlock
			v.Spec.VolumeMode = &block
			refersTo("claim")(v)
		}, claim: func(*v1.PersistentVolumeClaim) {}, event: "ProvisioningFailed", says: "not found"},
	"unsatisfiable selector": {
		volume: withSize("1Mi"), claim: func(c *v1.PersistentVolumeClaim) {
			c.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: "a", Operator: metav1.LabelSelectorOpExists}, {Key: "a", Operator: metav1.LabelSelectorOpDoesNotExist}}}
		}, event: "ProvisioningFailed", says: "not found"},
	"claim bound to no volume": {
		volume: withSize("1Mi"), claim: func(c *v1.PersistentVolumeClaim) {
			c.Annotations = map[string]string{storage.AnnBindCompleted: "yes"}
		}, event: "ClaimLost", says: "lost reference to PersistentVolume"},
	"claim bound to missing volume": {
		volume: withSize("1Mi"), claim: func(c *v1.PersistentVolumeClaim) {
			c.Annotations, c.Spec.VolumeName = map[string]string{storage.AnnBindCompleted: "yes"}, "nowhere"
		}, event: "ClaimLost", says: "nowhere"},
	"unparsable capacity before resizing": {
		volume: func(v *v1.PersistentVolume) {
			v.Annotations = map[string]string{storage.AnnPreResizeCapacity: "much"}
		}, claim: func(*v1.PersistentVolumeClaim) {}},
}

func TestInvalidObjectsGetEventsAndCostBoundedRequests(t *testing.T) {
	harness.Parallel(t, harness.Setup{})
	for name, tc := range invalidPairs {
		t.Run(name, func(t *testing.T) {
			s := harness.Join(t, harness.Setup{})
			tc.run(s)
		})
	}
}

func (tc invalidPair) run(s *harness.Session) {
	s.T.Helper()
	volume := s.CreateVolume("fault", v1.PersistentVolumeReclaimRetain, withSize("1Mi"), tc.volume)
	claim := s.CreateClaim("claim", s.Namespace, tc.claim)
	if tc.event != "" {
		if message := s.AwaitEvent(claim, tc.event); !strings.Contains(message, tc.says) {
			s.T.Errorf("the event %s does not say %q: %s", tc.event, tc.says, message)
		}
	}
	s.PassQueues()
	s.PassQueues()
	expectRequests(s, func(e sandbox.Event) bool {
		return e.Name == volume.Name || e.Namespace == s.Namespace && e.Name == "claim"
	}, 12)
}

// names sets the volume name of a claim.
func names(handle string) func(*v1.PersistentVolumeClaim) {
	return func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeName = c.Namespace + "-" + handle }
}

func asks(size string) func(*v1.PersistentVolumeClaim) {
	return func(c *v1.PersistentVolumeClaim) {
		c.Spec.Resources.Requests[v1.ResourceStorage] = resource.MustParse(size)
	}
}

// refersTo sets the claim reference of a volume, with a UID if there is one.
func refersTo(claim string, uid ...types.UID) func(*v1.PersistentVolume) {
	return func(v *v1.PersistentVolume) {
		v.Spec.ClaimRef = &v1.ObjectReference{Namespace: v.Spec.StorageClassName, Name: claim}
		for _, uid := range uid {
			v.Spec.ClaimRef.UID = uid
		}
	}
}
