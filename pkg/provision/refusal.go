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
// or not ready. The claim is retried with backoff.
type NotReady struct {
	Sentence string
}

// Error returns the sentence.
func (n *NotReady) Error() string { return n.Sentence }

func notReady(format string, values ...any) error {
	return &NotReady{Sentence: fmt.Sprintf(format, values...)}
}

// LeftToOther is why another provisioner serves the claim. An empty sentence makes no event;
// the claim is then retried after the longest backoff.
type LeftToOther struct {
	Sentence string
}

// Error returns the sentence.
func (n *LeftToOther) Error() string { return n.Sentence }

// UnsuitableNode is why the selected node cannot have the volume. The scheduler must select
// another node.
type UnsuitableNode struct {
	Sentence string
}

// Error returns the sentence.
func (e *UnsuitableNode) Error() string { return e.Sentence }
