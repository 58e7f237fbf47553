package demo

import (
	"context"
	"errors"
	"testing"
)

func TestWhyEndedPrefersTheCause(t *testing.T) {
	interrupted, died, other := errors.New("interrupted"), errors.New("died"), errors.New("request failed")
	for name, tc := range map[string]struct {
		outer, inner error // why the contexts ended, nil if they did not
		err          error
		want         error
	}{
		"nothing ended":                          {nil, nil, other, other},
		"an interruption is the whole error":     {interrupted, nil, errors.Join(other, interrupted), interrupted},
		"a death explains the request that fell": {nil, died, other, died},
		"a death keeps what was waited for":      {nil, died, errors.Join(other, died), other},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, interrupt := context.WithCancelCause(t.Context())
			defer interrupt(nil)
			guarded, fail := context.WithCancelCause(ctx)
			defer fail(nil)
			if tc.outer != nil {
				interrupt(tc.outer)
			}
			if tc.inner != nil {
				fail(tc.inner)
			}
			if got := whyEnded(ctx, guarded, tc.err); !errors.Is(got, tc.want) || (tc.outer != nil && errors.Is(got, other)) {
				t.Errorf("whyEnded = %v, want %v", got, tc.want)
			}
		})
	}
}
