package upstream

import (
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// disturbed is how long a webhook denies or undoes writes.
const disturbed = 5 * time.Second

// A webhook denies every write of the programs with the 404 of another object, or undoes it, while a claim is created, another
// one is deleted, and the policy of a volume becomes Delete. Once the webhook is gone, all of it happens.
func TestWritesAreRepeatedUntilWebhookAllowsThem(t *testing.T) {
	t.Parallel()
	for side, setup := range map[string]harness.Setup{"ours": {}, "stock": {UpstreamLoops: true, UpstreamSidecar: true}} {
		t.Run(side, func(t *testing.T) {
			t.Parallel()
			s := harness.Own(t, setup, harness.Within(2*harness.Timeout))
			for _, name := range []string{"denied", "undone"} {
				w := disturb(s, name)
				w.act()
				calls := w.hook.CallsIn(disturbed)
				w.hook.SwitchOff()
				left := w.await(side == "ours")
				t.Logf("%s, %s: %d writes in %s; then left undone: %q", side, name, calls, disturbed, left)
				if side == "ours" && (calls > 150 || len(left) > 0) {
					t.Errorf("%d writes, left undone: %q", calls, left)
				}
			}
			if told := strings.Contains(s.AllEvents(), `"reason":"WriteRefused"`); told != (side == "ours") {
				t.Errorf("an event tells of refused writes: %t", told)
			}
		})
	}
}

// disturbance is what a test does to claims and volumes while a webhook denies or undoes writes.
type disturbance struct {
	*harness.Session
	hook *harness.Webhook
	name string
	// deleted is the volume of the claim that is deleted, kept the volume with policy Retain.
	deleted, kept *v1.PersistentVolume
}

// disturb binds two claims, and registers the webhook.
func disturb(s *harness.Session, name string) *disturbance {
	s.T.Helper()
	d := &disturbance{Session: s, name: name}
	s.CreateClaim(name+"-deleted", harness.DeleteClass)
	s.CreateClaim(name+"-kept", harness.RetainClass)
	s.CreateClaim(name+"-probe", "none")
	d.deleted, d.kept = s.AwaitBound(name+"-deleted"), s.AwaitBound(name+"-kept")
	s.ExpectFinalizer(d.deleted, true)
	isProgram := func(request *admissionv1.AdmissionRequest) bool {
		user := request.UserInfo.Username
		return strings.HasPrefix(user, "system:serviceaccount:") || user == "system:kube-controller-manager"
	}
	objects := []string{"persistentvolumes", "persistentvolumes/status", "persistentvolumeclaims",
		"persistentvolumeclaims/status"}
	admission := s.Client.AdmissionregistrationV1()
	var err error
	if name == "denied" {
		d.hook = harness.NewWebhook(s.T, isProgram, harness.DenyWithNotFound)
		rule := harness.WritesOf(objects, registrationv1.Update, registrationv1.Delete)
		_, err = admission.ValidatingWebhookConfigurations().Create(s.Ctx, d.hook.Validating(name, rule),
			metav1.CreateOptions{})
	} else {
		d.hook = harness.NewWebhook(s.T, isProgram, harness.Undo(s.T, "/metadata/finalizers", "/metadata/annotations",
			"/metadata/labels", "/spec", "/status"))
		_, err = admission.MutatingWebhookConfigurations().Create(s.Ctx,
			d.hook.Mutating(name, harness.WritesOf(objects, registrationv1.Update)), metav1.CreateOptions{})
	}
	s.Must(err, "register webhook")
	s.Until("the webhook is called", func() bool {
		probe, err := s.Client.CoreV1().PersistentVolumeClaims(s.Namespace).
			Patch(s.Ctx, name+"-probe", types.MergePatchType, []byte(`{"metadata":{"labels":{"new":"yes"}}}`),
				metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		return apierrors.IsNotFound(err) || err == nil && probe.Labels["new"] == ""
	})
	return d
}

// act does what the users do meanwhile.
func (d *disturbance) act() {
	d.T.Helper()
	d.CreateClaim(d.name+"-new", harness.DeleteClass)
	d.DeleteClaim(d.name + "-deleted")
	d.SetPolicy(d.kept.Name, v1.PersistentVolumeReclaimDelete)
}

// await waits for what must happen, and returns what has not. Without patience it waits for five seconds.
func (d *disturbance) await(patient bool) (left []string) {
	d.T.Helper()
	end := time.After(5 * time.Second)
	if patient {
		end = time.After(45 * time.Second)
	}
	for {
		if left = d.left(); len(left) == 0 {
			return nil
		}
		select {
		case <-end:
			return left
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// left returns what has not happened yet.
func (d *disturbance) left() (left []string) {
	d.T.Helper()
	claims, volumes := d.Client.CoreV1().PersistentVolumeClaims(d.Namespace), d.Client.CoreV1().PersistentVolumes()
	claim, err := claims.Get(d.Ctx, d.name+"-new", metav1.GetOptions{})
	d.Must(err, "read claim")
	if claim.Status.Phase != v1.ClaimBound {
		left = append(left, "the new claim is "+string(claim.Status.Phase))
	} else if volume, err := volumes.Get(d.Ctx, claim.Spec.VolumeName, metav1.GetOptions{}); err != nil ||
		!isProtected(volume) {
		left = append(left, "the volume of the new claim has no finalizer")
	}
	if _, err := claims.Get(d.Ctx, d.name+"-deleted", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		left = append(left, "the deleted claim is Terminating")
	}
	if _, err := volumes.Get(d.Ctx, d.deleted.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) ||
		d.IsStored(harness.Handle(d.deleted)) {
		left = append(left, "the volume of the deleted claim, or its disk, exists")
	}
	kept, err := volumes.Get(d.Ctx, d.kept.Name, metav1.GetOptions{})
	d.Must(err, "read volume")
	if !isProtected(kept) {
		left = append(left, "the volume whose policy is Delete now has no finalizer")
	}
	return left
}

// isProtected reports whether the volume has the finalizer that keeps it until its disk is deleted.
func isProtected(volume *v1.PersistentVolume) bool {
	return finalizer.Has(volume.Finalizers, finalizer.External)
}
