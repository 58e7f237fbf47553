package terminal

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// RejectUnknown refuses an unknown subcommand, and suggests a similar one.
func RejectUnknown(command *cobra.Command, words []string) error {
	if len(words) == 0 {
		return nil
	}
	hint := "see " + command.CommandPath() + " --help"
	var names []string
	for _, known := range command.Commands() {
		names = append(names, known.Name())
	}
	if meant := Closest(words[0], names); meant != "" {
		hint = "did you mean " + meant + "?"
	}
	return fmt.Errorf("unknown command %q, %s", words[0], hint)
}

// NoArguments refuses arguments.
func NoArguments(command *cobra.Command, words []string) error {
	if len(words) == 0 {
		return nil
	}
	return fmt.Errorf("%s takes no arguments, not %q, see %[1]s --help", command.CommandPath(), words[0])
}

// Closest returns the candidate that differs least from the word, regardless of case, and ""
// if all differ in more than a third of the word's letters.
func Closest(word string, candidates []string) string {
	word = strings.ToLower(word)
	closest, least := "", max(1, len(word)/3)+1
	for _, candidate := range candidates {
		if d := distance(word, strings.ToLower(candidate)); d < least {
			closest, least = candidate, d
		}
	}
	return closest
}

// distance returns how many letters have to be changed, added, removed or swapped with their
// neighbor.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			changed := rows[i-1][j-1]
			if a[i-1] != b[j-1] {
				changed++
			}
			rows[i][j] = min(changed, rows[i][j-1]+1, rows[i-1][j]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
