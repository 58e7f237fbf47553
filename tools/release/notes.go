package main

import (
	"fmt"
	"strings"
)

// notesOf returns the section of a version in a changelog. A version between two releases, with
// a plus sign, has that of Unreleased.
func notesOf(changelog, version string) (string, error) {
	title := strings.TrimPrefix(version, "v")
	if strings.Contains(version, "+") {
		title = "Unreleased"
	}
	_, rest, found := strings.Cut(changelog, "\n## ["+title+"]")
	if !found {
		return "", fmt.Errorf("the changelog has no section [%s]: add one before the release", title)
	}
	_, section, _ := strings.Cut(rest, "\n") // the rest of the line is a date
	section, _, _ = strings.Cut(section, "\n## ")
	return strings.TrimSpace(section) + "\n", nil
}
