package answer

// Refusal is the error of a write that was refused although the object exists and is as it was observed: an
// admission webhook chooses the code of its denial at will, so that a conflict or NotFound says nothing about
// the object. A Refusal has no status of the API server, and matches none.
type Refusal struct {
	// Answer is the answer to the write.
	Answer error
}

// Error returns the text of the answer.
func (r *Refusal) Error() string { return r.Answer.Error() }
