package answer_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/exeunt-io/exeunt/internal/answer"
)

func TestWhatErrorsProve(t *testing.T) {
	volumes := v1.Resource("persistentvolumes")
	for name, tc := range map[string]struct {
		err               error
		definite, refused bool
	}{
		"no error":              {nil, false, false},
		"no answer":             {context.DeadlineExceeded, false, false},
		"internal error":        {apierrors.NewInternalError(errors.New("scripted")), false, false},
		"timeout":               {apierrors.NewServerTimeout(volumes, "create", 1), false, false},
		"too many requests":     {apierrors.NewTooManyRequests("later", 1), true, false},
		"conflict":              {apierrors.NewConflict(volumes, "name", errors.New("scripted")), true, false},
		"forbidden":             {apierrors.NewForbidden(volumes, "name", errors.New("scripted")), true, true},
		"invalid":               {apierrors.NewInvalid(v1.SchemeGroupVersion.WithKind("PersistentVolume").GroupKind(), "name", nil), true, true},
		"conflict of a webhook": {fmt.Errorf("write: %w", &answer.Refusal{Answer: apierrors.NewConflict(volumes, "name", errors.New("scripted"))}), true, true},
		"forbidden, in words":   {fmt.Errorf("write: %w", apierrors.NewForbidden(volumes, "name", errors.New("scripted"))), true, true},
	} {
		t.Run(name, func(t *testing.T) {
			if definite, refused := answer.IsDefinite(tc.err), answer.IsRefused(tc.err); definite != tc.definite ||
				refused != tc.refused {
				t.Errorf("definite %t, refused %t", definite, refused)
			}
		})
	}
}

// A webhook denies with the codes of an object that is gone or has changed: nothing but a read tells.
func TestDeniedWriteNeedsARead(t *testing.T) {
	claims := v1.Resource("persistentvolumeclaims")
	kind := v1.SchemeGroupVersion.WithKind("PersistentVolumeClaim").GroupKind()
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"no error":             {nil, false},
		"no answer":            {context.DeadlineExceeded, false},
		"forbidden":            {apierrors.NewForbidden(claims, "name", errors.New("scripted")), false},
		"validation":           {apierrors.NewInvalid(kind, "name", field.ErrorList{field.Required(field.NewPath("spec"), "")}), false},
		"not found":            {apierrors.NewNotFound(claims, "name"), true},
		"not found, in words":  {fmt.Errorf("delete: %w", apierrors.NewNotFound(claims, "name")), true},
		"gone":                 {&apierrors.StatusError{ErrStatus: metav1.Status{Code: 410, Reason: "Gone"}}, true},
		"conflict":             {apierrors.NewConflict(claims, "name", errors.New("scripted")), true},
		"failed test":          {apierrors.NewInvalid(kind, "name", nil), true},
		"refusal after a read": {&answer.Refusal{Answer: apierrors.NewNotFound(claims, "name")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := answer.NeedsRead(tc.err); got != tc.want {
				t.Errorf("NeedsRead(%v) = %v", tc.err, got)
			}
		})
	}
}

// Webhooks and policies deny with the code and the causes of an invalid object, too.
func TestOnlyValidationProvesAnInvalidObject(t *testing.T) {
	kind, required := v1.SchemeGroupVersion.WithKind("PersistentVolume").GroupKind(),
		field.ErrorList{field.Required(field.NewPath("spec"), "")}
	handedOn := apierrors.NewInvalid(kind, "v", required)
	handedOn.ErrStatus.Message = `admission webhook "w" denied the request: ` + handedOn.ErrStatus.Message
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"no error":               {nil, false},
		"validation":             {apierrors.NewInvalid(kind, "v", required), true},
		"validation, in words":   {fmt.Errorf("create: %w", apierrors.NewInvalid(kind, "v", required)), true},
		"another object":         {apierrors.NewInvalid(kind, "other", required), false},
		"without causes":         {apierrors.NewInvalid(kind, "v", nil), false},
		"handed on by a webhook": {handedOn, false},
		"forbidden":              {apierrors.NewForbidden(v1.Resource("persistentvolumes"), "v", nil), false},
		"no answer":              {context.DeadlineExceeded, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := answer.IsInvalidObject(tc.err, "PersistentVolume", "v"); got != tc.want {
				t.Errorf("IsInvalidObject(%v) = %v", tc.err, got)
			}
		})
	}
}
