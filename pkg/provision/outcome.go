package provision

import "google.golang.org/grpc/codes"

// Outcome is what an error of CreateVolume says of the volume.
type Outcome int

const (
	// Final: there is no volume, and the driver does not make one any more.
	Final Outcome = iota
	// Unknown: there may be a volume, or the driver may still be making it. The
	// request must be repeated until the outcome is known, or it would be forgotten.
	Unknown
)

// OutcomeOf returns what the code of an error says (CSI specification, "Error Scheme").
func OutcomeOf(code codes.Code) Outcome {
	switch code {
	case codes.Canceled, codes.DeadlineExceeded, codes.Unavailable, codes.Aborted, codes.AlreadyExists:
		return Unknown
	default:
		return Final
	}
}
