package writeerror_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/exeunt-io/exeunt/internal/writeerror"
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
		"conflict of a webhook": {fmt.Errorf("write: %w", &writeerror.Refusal{Answer: apierrors.NewConflict(volumes, "name", errors.New("scripted"))}), true, true},
		"forbidden, in words":   {fmt.Errorf("write: %w", apierrors.NewForbidden(volumes, "name", errors.New("scripted"))), true, true},
	} {
		t.Run(name, func(t *testing.T) {
			if definite, refused := writeerror.IsDefinite(tc.err), writeerror.IsRefused(tc.err); definite != tc.definite || refused != tc.refused {
				t.Errorf("definite %t, refused %t", definite, refused)
			}
		})
	}
}
