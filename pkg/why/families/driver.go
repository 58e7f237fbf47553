package families

import (
	"slices"
	"strings"
)

// sidecarLeases are what the names of the sidecars' Leases have before the driver's name.
var sidecarLeases = []string{"", "external-attacher-leader-", "external-snapshotter-leader-", "external-resizer-",
	"external-health-monitor-leader-"}

// IsSidecarLease reports whether the Lease is that of a sidecar of the driver.
func IsSidecarLease(name, driver string) bool {
	return slices.ContainsFunc(sidecarLeases,
		func(prefix string) bool { return strings.EqualFold(name, prefix+SanitizedDriver(driver)) })
}

// NamesDriver reports whether the text has the driver's name as a whole word, as it is or as
// Leases and finalizers have it. The driver's name may be given in both forms.
func NamesDriver(text, driver string) bool {
	word := SanitizedDriver(driver)
	for i := range text {
		rest := text[i:]
		if driver != "" && startsWithDriver(rest, word) && (i == 0 || !isNameByte(text[i-1])) &&
			(len(rest) == len(word) || !isNameByte(rest[len(word)])) {
			return true
		}
	}
	return false
}

// startsWithDriver reports whether the text starts with the driver's name, in which - stands
// for any character but letters and digits.
func startsWithDriver(text, word string) bool {
	if len(text) < len(word) {
		return false
	}
	for i := range len(word) {
		if word[i] != text[i] && (word[i] != '-' || isAlphanumeric(text[i])) {
			return false
		}
	}
	return true
}

func isNameByte(b byte) bool { return isAlphanumeric(b) || b == '-' || b == '.' }

func isAlphanumeric(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9'
}
