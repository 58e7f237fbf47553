package csi

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"google.golang.org/grpc/status"
)

// shortestSecret is the length in bytes of the shortest value that is hidden: shorter
// values occur in texts by chance.
const shortestSecret = 4

// hidden replaces a value.
const hidden = "***stripped***"

// redact hides the values of the secrets in the driver's error message, which becomes an
// event. The code stays.
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

// Hide hides the values of secrets in a text: verbatim, in JSON and in Go quotes. Values of
// less than 4 bytes are not hidden.
func Hide(text string, secrets map[string]string) string {
	if len(secrets) == 0 {
		return text
	}
	// Values may overlap: all are found before the first is hidden, or a rest would stay.
	secret := make([]bool, len(text))
	for _, value := range secrets {
		for _, form := range forms(value) {
			markSecret(secret, text, form)
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

// markSecret marks every byte of every occurrence of the form.
func markSecret(secret []bool, text, form string) {
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

// forms returns the spellings of a value, none for a value that is too short.
func forms(value string) []string {
	value = strings.TrimSpace(value)
	if len(value) < shortestSecret {
		return nil
	}
	written := []string{value, unquoted(strconv.Quote(value))}
	for _, html := range []bool{true, false} {
		var text bytes.Buffer
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(html)
		if err := encoder.Encode(value); err == nil {
			written = append(written, unquoted(strings.TrimSpace(text.String())))
		}
	}
	return written
}

// unquoted returns the text between the quotes.
func unquoted(quoted string) string {
	return quoted[1 : len(quoted)-1]
}
