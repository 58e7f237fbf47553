package answer

import (
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// IsInvalidObject reports whether the API server's own validation has refused the object that was to be created: it
// refuses the object forever. Admission webhooks and policies deny with the same code and with causes of their choice,
// but the API server begins the messages of their denials with other words, and a webhook may be mended.
func IsInvalidObject(err error, kind, name string) bool {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) {
		return false
	}
	refusal := status.Status()
	return refusal.Details != nil && len(refusal.Details.Causes) > 0 &&
		strings.HasPrefix(refusal.Message, kind+` "`+name+`" is invalid: `)
}
