package provision

import (
	"errors"
	"fmt"
	"strings"
)

// expand replaces every ${token} by its value. A dollar sign stands for nothing
// else. The error completes the sentence "the value ...".
func expand(template string, known map[string]string) (string, error) {
	var text strings.Builder
	for {
		before, rest, found := strings.Cut(template, "$")
		text.WriteString(before)
		if !found {
			return text.String(), nil
		}
		token, after, closed := strings.Cut(rest, "}")
		if !closed || !strings.HasPrefix(token, "{") {
			return "", errors.New("invalid token: a $ that does not begin ${...}")
		}
		value, ok := known[token[1:]]
		if !ok {
			return "", fmt.Errorf("invalid tokens: ${%s} is unknown", token[1:])
		}
		text.WriteString(value)
		template = after
	}
}
