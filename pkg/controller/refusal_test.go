package controller

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/exeunt-io/exeunt/internal/answer"
	"github.com/exeunt-io/exeunt/pkg/patch"
)

// outcomes of a refused write, as its caller sees them.
type outcome struct{ gone, stale, refused bool }

func outcomeOf(err error) outcome {
	var refusal *answer.Refusal
	return outcome{errors.Is(err, ErrGone), patch.IsStale(err), errors.As(err, &refusal)}
}

// A webhook chooses the code of its denial. What the code says counts only if a live read confirms it.
func TestRefusalIsCheckedByLiveRead(t *testing.T) {
	resource := v1.Resource("persistentvolumes")
	denied := &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusGone,
		Reason: metav1.StatusReasonGone, Message: "gone"}}
	invalid := apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "patch", resource, "disk",
		"testing value failed", 0, false)
	same, changed, another := diskOf("1", ""), diskOf("1", ""), diskOf("2", "")
	changed.ResourceVersion = "8"
	gone, refused, stale := outcome{gone: true}, outcome{refused: true}, outcome{stale: true}
	for name, tc := range map[string]struct {
		answer error
		stored *v1.PersistentVolume
		want   outcome
	}{
		"404, object is gone":        {apierrors.NewNotFound(resource, "disk"), nil, gone},
		"404, another object":        {apierrors.NewNotFound(resource, "disk"), another, gone},
		"404, object lives":          {apierrors.NewNotFound(resource, "disk"), same, refused},
		"404, object has changed":    {apierrors.NewNotFound(resource, "disk"), changed, refused},
		"410, object is gone":        {denied, nil, gone},
		"410, object lives":          {denied, same, refused},
		"409, object has changed":    {apierrors.NewConflict(resource, "disk", errors.New("modified")), changed, stale},
		"409, object is as observed": {apierrors.NewConflict(resource, "disk", errors.New("denied")), same, refused},
		"409, object is gone":        {apierrors.NewConflict(resource, "disk", errors.New("modified")), nil, gone},
		"422, object has changed":    {invalid, changed, stale},
		"422, object is as observed": {invalid, same, refused},
		"403":                        {apierrors.NewForbidden(resource, "disk", errors.New("denied")), nil, outcome{}},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset()
			if tc.stored != nil {
				client = fake.NewClientset(tc.stored)
			}
			err := CheckRefusal(t.Context(), tc.answer, "volume", diskOf("1", ""), client.CoreV1().PersistentVolumes().Get)
			if got := outcomeOf(err); got != tc.want {
				t.Errorf("%v: %+v, want %+v", err, got, tc.want)
			}
		})
	}
}

// The API server itself answers that it does not reach a webhook that must answer. It answers with 500 at its own end, too.
func TestUnreachableWebhookRefuses(t *testing.T) {
	const calls = `failed calling webhook "w.example": failed to call webhook: Post "https://w.ns.svc:443/v?timeout=10s"`
	answered := func(text string) error {
		return fmt.Errorf("patch volume v: %w", apierrors.NewInternalError(errors.New(text)))
	}
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"webhook does not listen":  {answered(calls + ": dial tcp 10.0.0.1:443: connect: connection refused"), true},
		"webhook has no service":   {answered(`failed calling webhook "w.example": service "w" not found`), true},
		"API server ends":          {answered(calls + ": context canceled"), false},
		"etcd does not answer":     {answered("etcdserver: request timed out"), false},
		"no answer":                {errors.New(calls), false},
		"webhook is not the cause": {apierrors.NewServiceUnavailable(calls), false},
	} {
		if got := IsRefusal(tc.err); got != tc.want {
			t.Errorf("%s: IsRefusal(%v) = %v", name, tc.err, got)
		}
	}
	one, other := answered(calls+": read tcp 10.0.0.1:40001->10.0.0.2:443: EOF"),
		answered(calls+": read tcp 10.0.0.1:40002->10.0.0.2:443: EOF")
	if a, b := RefusalEvent("Adding", one), RefusalEvent("Adding", other); a != b || !strings.HasSuffix(a.Message, calls+": read tcp 10.0.0.2:443: EOF") {
		t.Errorf("events %q and %q, want one without ports", a.Message, b.Message)
	}
	if text := RefusalEvent("Adding", answered("scripted")).Message; !strings.HasSuffix(text, "scripted") {
		t.Errorf("event %q", text)
	}
}

// Without an answer to the read nothing is known, and the write is repeated with backoff.
func TestRefusalIsNoProofWithoutRead(t *testing.T) {
	client := fake.NewClientset()
	client.PrependReactor("get", "persistentvolumes", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewInternalError(errors.New("scripted"))
	})
	for _, answer := range []error{apierrors.NewNotFound(v1.Resource("persistentvolumes"), "disk"),
		apierrors.NewConflict(v1.Resource("persistentvolumes"), "disk", errors.New("modified"))} {
		err := CheckRefusal(t.Context(), answer, "volume", diskOf("1", ""), client.CoreV1().PersistentVolumes().Get)
		if got := outcomeOf(err); err == nil || got != (outcome{}) {
			t.Errorf("%v: %+v", err, got)
		}
	}
}

func TestAnswerAboutAnotherObjectIsAnError(t *testing.T) {
	client := fake.NewClientset(diskOf("1", ""))
	client.PrependReactor("patch", "persistentvolumes", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, diskOf("2", ""), nil
	})
	volume := diskOf("1", "")
	if now, err := NewWriter(client, NewVersions()).PatchVolume(t.Context(), volume,
		patch.For(volume).Set("/metadata/labels", map[string]string{"a": "b"})); err == nil {
		t.Errorf("no error, and volume %v", now.UID)
	}
}

// A mutating webhook undoes a label: its writer is answered with success each time.
func TestUndoneWriteIsRepeatedWithPauses(t *testing.T) {
	client, writes := fake.NewClientset(diskOf("1", "")), 0
	client.PrependReactor("patch", "persistentvolumes", func(clienttesting.Action) (bool, runtime.Object, error) {
		writes++
		return true, diskOf("1", ""), nil
	})
	writer, volume := NewWriter(client, NewVersions()), diskOf("1", "")
	var reverted *RevertedError
	for range 100 {
		_, err := writer.PatchVolume(t.Context(), volume, patch.ForVersion(volume).
			Set("/metadata/labels", map[string]string{"a": "b"}))
		if err != nil && !errors.As(err, &reverted) {
			t.Fatal(err)
		}
	}
	if writes != unpausedRepeats || reverted == nil {
		t.Errorf("%d writes, last error %v", writes, reverted)
	}
	before := writes
	if _, _ = writer.PatchVolume(t.Context(), volume, patch.For(volume).
		Set("/metadata/labels", map[string]string{"c": "d"})); writes == before {
		t.Error("another write waits")
	}
}

// A volume that is recycled has each phase again and again, by several writers of one program.
func TestPhasesOfARecycledVolumeHaveNoPauses(t *testing.T) {
	client, versions, volume := fake.NewClientset(diskOf("1", "")), NewVersions(), diskOf("1", "")
	claims, volumes := NewWriter(client, versions), NewWriter(client, versions)
	for i := range 10 * unpausedRepeats {
		phase, writer := v1.VolumeBound, claims
		if i%2 == 1 {
			phase, writer = v1.VolumeReleased, volumes
		}
		now, err := writer.PatchVolume(t.Context(), volume, patch.For(volume).Set("/status/phase", string(phase)))
		if err != nil {
			t.Fatalf("phase %s in round %d: %v", phase, i/2, err)
		}
		volume = now
	}
}

// Another program undoes the write before this one writes something else.
func TestUndoneWriteIsPausedAmongOthers(t *testing.T) {
	client, versions := fake.NewClientset(diskOf("1", "")), NewVersions()
	writer, paused := NewWriter(client, versions), false
	for i := range 5 * unpausedRepeats {
		volume := diskOf("1", "") // as it is after the other program
		_, err := writer.PatchVolume(t.Context(), volume, patch.For(volume).Set("/metadata/finalizers", []string{"ours"}))
		paused = paused || errors.Is(err, ErrTooManySteps)
		other := patch.For(volume).Set("/metadata/labels", map[string]string{"write": strconv.Itoa(i)})
		if _, err := writer.PatchVolume(t.Context(), volume, other); err != nil {
			t.Fatal(err)
		}
	}
	if !paused {
		t.Error("the finalizer is written without pauses")
	}
}

// An answer with the version that was observed says that nothing was stored: no event will follow.
func TestAnswerWithoutTheChangeIsAnError(t *testing.T) {
	protected := func(version string, finalizers ...string) *v1.PersistentVolume {
		volume := diskOf("1", "")
		volume.ResourceVersion, volume.DeletionTimestamp, volume.Finalizers = version, &metav1.Time{}, finalizers
		return volume
	}
	for name, tc := range map[string]struct {
		answer *v1.PersistentVolume
		undone bool
	}{
		"finalizer is still there":          {protected("7", "ours"), true},
		"finalizer is there, new version":   {protected("8", "ours", "theirs"), false},
		"last finalizer and object deleted": {protected("7"), false},
		"finalizer is gone":                 {protected("8"), false},
	} {
		t.Run(name, func(t *testing.T) {
			client, volume := fake.NewClientset(), protected("7", "ours")
			client.PrependReactor("patch", "persistentvolumes",
				func(clienttesting.Action) (bool, runtime.Object, error) { return true, tc.answer, nil })
			_, err := NewWriter(client, NewVersions()).PatchVolume(t.Context(), volume,
				patch.For(volume).Remove("/metadata/finalizers"))
			if errors.Is(err, ErrTooManySteps) != tc.undone || !tc.undone && err != nil {
				t.Errorf("error %v, want undone: %v", err, tc.undone)
			}
		})
	}
}
