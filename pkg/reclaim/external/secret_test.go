package external_test

import (
	"testing"

	. "github.com/exeunt-io/exeunt/pkg/reclaim/external"
)

func TestSecretUse(t *testing.T) {
	for name, tc := range map[string]struct {
		secret Secret
		want   SecretUse
	}{
		"volume names no secret":      {SecretNone, CallWithoutSecret},
		"secret exists":               {SecretPresent, CallWithSecret},
		"secret can be created again": {SecretMissing, AwaitSecret},
		"namespace cannot be read":    {SecretMissingNamespaceUnknown, AwaitSecret},
		"namespace is being deleted":  {SecretNamespaceTerminating, CallWithoutSecret},
		"namespace is gone":           {SecretNamespaceGone, CallWithoutSecret},
		"unknown value waits":         {SecretNamespaceGone + 1, AwaitSecret},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.secret.Use(); got != tc.want {
				t.Errorf("%v.Use() = %v, want %v", tc.secret, got, tc.want)
			}
		})
	}
}
