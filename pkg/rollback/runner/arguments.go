package runner

import (
	"iter"
	"slices"
	"strings"
)

// The flags and feature gates of our provisioner that the image upstreamImage does not know, and
// does not start with.
var (
	ownFlags = []string{"audit-interval", "driver-wait", "journal-unresolved-after"}
	ownGates = []string{"HonorPVReclaimPolicy", "ProvisioningJournal"}
)

// flagsIn yields name and value of each flag among the words of a command line.
func flagsIn(words []string) iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		for i, word := range words {
			name, value, has := strings.Cut(strings.TrimLeft(word, "-"), "=")
			if !has && i+1 < len(words) {
				value = words[i+1]
			}
			if strings.HasPrefix(word, "-") && !yield(name, value) {
				return
			}
		}
	}
}

// unknownToUpstream returns the arguments that upstream's image does not start with.
func unknownToUpstream(args []string) []string {
	var all []string
	for name, value := range flagsIn(args) {
		if slices.Contains(ownFlags, name) {
			all = append(all, "--"+name)
		}
		if name != "feature-gates" {
			continue
		}
		for setting := range strings.SplitSeq(value, ",") {
			if gate, _, _ := strings.Cut(strings.TrimSpace(setting), "="); slices.Contains(ownGates, gate) {
				all = append(all, gate+" of --feature-gates")
			}
		}
	}
	return withoutRepeats(all)
}

// withoutRepeats returns the words in their order, each once.
func withoutRepeats(words []string) []string {
	var once []string
	for _, word := range words {
		if !slices.Contains(once, word) {
			once = append(once, word)
		}
	}
	return once
}
