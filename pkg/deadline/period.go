package deadline

import (
	"fmt"
	"regexp"
	"time"
)

// Never is the period without a deadline.
const Never = "Never"

// Period is how long a termination may take. The zero Period has no end.
type Period struct {
	length  time.Duration
	limited bool
}

// Limited returns the period of this length, which is at least 0.
func Limited(length time.Duration) Period { return Period{max(length, 0), true} }

// Length returns the length of the period; false if the period has no end.
func (p Period) Length() (time.Duration, bool) { return p.length, p.limited }

// String returns the period as ParsePeriod reads it.
func (p Period) String() string {
	if !p.limited {
		return Never
	}
	return p.length.String()
}

var period = regexp.MustCompile(`^([0-9]+(s|m|h))+$`)

// ParsePeriod reads a period: "30m", "1h30m", "0s", or "Never". The error is a sentence for the user who wrote the
// text. A period of more than 292 years is an error: no clock could reach its end.
func ParsePeriod(text string) (Period, error) {
	if text == Never {
		return Period{}, nil
	}
	if !period.MatchString(text) {
		return Period{}, fmt.Errorf("%q is no period: write whole numbers with s, m or h, such as 30m or 1h30m, or %s", shortened(text), Never)
	}
	length, err := time.ParseDuration(text)
	if err != nil {
		return Period{}, fmt.Errorf("the period %q is too long: write at most 2562047h, or %s", shortened(text), Never)
	}
	return Limited(length), nil
}

// shortened keeps a long value out of messages.
func shortened(text string) string {
	const limit = 40
	if len(text) > limit {
		return text[:limit] + "..."
	}
	return text
}
