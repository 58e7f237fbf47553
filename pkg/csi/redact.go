package csi

import (
	"strings"

	"google.golang.org/grpc/status"
)

// shortestSecret is the length in bytes from which on a value is searched for:
// shorter ones occur by chance.
const shortestSecret = 4

// redact hides the values of the secrets in what a driver says of a failure, for
// it becomes an event. The code stays as it is.
func redact(err error, secrets map[string]string) error {
	failure, ok := status.FromError(err)
	if err == nil || !ok {
		return err
	}
	message := strip(failure.Message(), secrets)
	if message == failure.Message() {
		return err
	}
	return status.Error(failure.Code(), message)
}

// strip hides the values of secrets in a text.
func strip(text string, secrets map[string]string) string {
	for _, value := range secrets {
		if value = strings.TrimSpace(value); len(value) >= shortestSecret {
			text = strings.ReplaceAll(text, value, "***stripped***")
		}
	}
	return text
}
