package provision

import "fmt"

// Refusal is why a claim cannot be served, as a sentence for its user. It stays
// until claim, class or driver change.
type Refusal struct {
	Sentence string
}

// Error returns the sentence.
func (r *Refusal) Error() string { return r.Sentence }

func refuse(format string, values ...any) error {
	return &Refusal{Sentence: fmt.Sprintf(format, values...)}
}

// NotYet is why a claim cannot be served now: something that it names is missing,
// or not ready. It may come, so the claim is tried again.
type NotYet struct {
	Sentence string
}

// Error returns the sentence.
func (n *NotYet) Error() string { return n.Sentence }

func notYet(format string, values ...any) error {
	return &NotYet{Sentence: fmt.Sprintf(format, values...)}
}

// NotOurs is why somebody else makes the volume. The claim is left to him.
type NotOurs struct {
	Sentence string
}

// Error returns the sentence.
func (n *NotOurs) Error() string { return n.Sentence }

// Elsewhere is why the volume must be made for another node than the one that the
// scheduler chose.
type Elsewhere struct {
	Sentence string
}

// Error returns the sentence.
func (e *Elsewhere) Error() string { return e.Sentence }
