package csi

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"google.golang.org/grpc/status"
)

// shortestSecret is the length in bytes from which on a value is searched for:
// shorter ones occur by chance.
const shortestSecret = 4

// hidden stands where a value was.
const hidden = "***stripped***"

// redact hides the values of the secrets in what a driver says of a failure, for
// it becomes an event. The code stays as it is.
func redact(err error, secrets map[string]string) error {
	failure, ok := status.FromError(err)
	if err == nil || !ok {
		return err
	}
	message := Hide(failure.Message(), secrets)
	if message == failure.Message() {
		return err
	}
	return status.Error(failure.Code(), message)
}

// Hide hides the values of secrets in a text, as they are and as they are written
// in JSON or in quotes. Values of less than 4 bytes are not searched for.
func Hide(text string, secrets map[string]string) string {
	if len(secrets) == 0 {
		return text
	}
	// All are found before one is hidden: values may overlap, and the rest of one
	// would stay.
	secret := make([]bool, len(text))
	for _, value := range secrets {
		for _, form := range forms(value) {
			mark(secret, text, form)
		}
	}
	var shown strings.Builder
	for i := range len(text) {
		switch {
		case !secret[i]:
			shown.WriteByte(text[i])
		case i == 0 || !secret[i-1]:
			shown.WriteString(hidden)
		}
	}
	return shown.String()
}

// mark marks every place of the text where the form stands.
func mark(secret []bool, text, form string) {
	for from := 0; ; from++ {
		at := strings.Index(text[from:], form)
		if at < 0 {
			return
		}
		from += at
		for i := range len(form) {
			secret[from+i] = true
		}
	}
}

// forms are the ways in which a value is written, none for one that is too short.
func forms(value string) []string {
	value = strings.TrimSpace(value)
	if len(value) < shortestSecret {
		return nil
	}
	written := []string{value, inside(strconv.Quote(value))}
	for _, html := range []bool{true, false} {
		var text bytes.Buffer
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(html)
		if err := encoder.Encode(value); err == nil {
			written = append(written, inside(strings.TrimSpace(text.String())))
		}
	}
	return written
}

// inside is what stands between the quotes.
func inside(quoted string) string {
	return quoted[1 : len(quoted)-1]
}
