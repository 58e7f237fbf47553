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

// NotReady is why a claim cannot be served now: something that it names is missing,
// or not ready. It may come, so the claim is tried again.
type NotReady struct {
	Sentence string
}

// Error returns the sentence.
func (n *NotReady) Error() string { return n.Sentence }

func notReady(format string, values ...any) error {
	return &NotReady{Sentence: fmt.Sprintf(format, values...)}
}

// LeftToOther is why somebody else makes the volume. The claim is left to him.
type LeftToOther struct {
	Sentence string
}

// Error returns the sentence.
func (n *LeftToOther) Error() string { return n.Sentence }

// UnsuitableNode is why the volume must be made for another node than the one that the
// scheduler chose.
type UnsuitableNode struct {
	Sentence string
}

// Error returns the sentence.
func (e *UnsuitableNode) Error() string { return e.Sentence }
