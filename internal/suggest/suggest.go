// Package suggest finds the word that a user may have meant.
package suggest

import "strings"

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

// distance returns how many letters have to be changed, added or removed (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			changed := diagonal
			if a[i] != b[j] {
				changed++
			}
			diagonal = row[j+1]
			row[j+1] = min(changed, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
