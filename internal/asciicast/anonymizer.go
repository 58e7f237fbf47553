package asciicast

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var (
	// random matches UIDs, and the names of volumes that begin with a part of a UID.
	random = regexp.MustCompile(`\b(?:pvc-|vol-\d{6}-)[0-9a-f]{8}` + uidRest + `?\b|\b[0-9a-f]{8}` + uidRest + `\b`)
	// firstPart matches the first part of a UID.
	firstPart = regexp.MustCompile(`[0-9a-f]{8}`)
	// temporary matches the random end of a directory of the demo.
	temporary = regexp.MustCompile(`\bexeunt-\d+\b`)
	// port matches an address of the machine with a port.
	port = regexp.MustCompile(`\b(127\.0\.0\.1|localhost):\d+\b`)
)

// uidRest matches what follows the first part of a UID.
const uidRest = `(?:(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})`

// Anonymizer replaces text that differs between machines or between runs.
type Anonymizer struct {
	paths *strings.Replacer
	// parts are the replacements of first parts of UIDs.
	parts map[string]string
}

// NewAnonymizer returns an Anonymizer that replaces directories by names; a directory inside of
// another one comes first. "" and the root are no directories of a user.
func NewAnonymizer(directories map[string]string) *Anonymizer {
	var paths []string
	for path := range directories {
		if len(path) > 1 {
			paths = append(paths, path)
		}
	}
	slices.SortFunc(paths, func(a, b string) int { return len(b) - len(a) })
	var replacements []string
	for _, path := range paths {
		replacements = append(replacements, path, directories[path])
	}
	return &Anonymizer{paths: strings.NewReplacer(replacements...), parts: map[string]string{}}
}

// Replace returns the text without paths, ports and random names of this machine and run. The
// same name gets the same replacement each time.
func (a *Anonymizer) Replace(text string) string {
	text = a.paths.Replace(text)
	text = temporary.ReplaceAllString(text, "exeunt-0")
	text = port.ReplaceAllString(text, "$1:0")
	return random.ReplaceAllStringFunc(text, a.rename)
}

// rename replaces the UID in a name by a number of as many digits, in the order of appearance.
func (a *Anonymizer) rename(name string) string {
	place := firstPart.FindStringIndex(name)
	part := name[place[0]:place[1]]
	if a.parts[part] == "" {
		a.parts[part] = fmt.Sprintf("%08x", len(a.parts)+1)
	}
	rest := name[place[1]:]
	if rest != "" {
		rest = "-0000-0000-0000-000000000000"
	}
	return name[:place[0]] + a.parts[part] + rest
}
