package reclaim_test

import (
	"testing"

	. "github.com/exeunt-io/exeunt/pkg/reclaim"
)

func TestSecretUse(t *testing.T) {
	for name, tc := range map[string]struct {
		secret Secret
		want   SecretUse
	}{
		"no secret is named":                       {NoSecret, CallWithoutSecret},
		"the secret exists":                        {SecretPresent, CallWithSecret},
		"the secret may be created again":          {SecretMissing, AwaitSecret},
		"nobody knows whether it may":              {SecretMissingNamespaceUnknown, AwaitSecret},
		"its namespace is being deleted":           {SecretNamespaceTerminating, CallWithoutSecret},
		"its namespace is gone":                    {SecretNamespaceGone, CallWithoutSecret},
		"a value of a later version is not called": {SecretNamespaceGone + 1, AwaitSecret},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.secret.Use(); got != tc.want {
				t.Errorf("Secret(%d).Use() = %d, want %d", tc.secret, got, tc.want)
			}
		})
	}
}
