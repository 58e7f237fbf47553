package instances

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/internal/terminal"
)

// State is the state of a machine.
type State string

const (
	// Running: the machine is on, or starts.
	Running State = "Running"
	// Stopping: the machine is about to end, and may still write.
	Stopping State = "Stopping"
	// Off: the machine exists and is off.
	Off State = "Off"
	// Gone: the machine does not exist, or no longer.
	Gone State = "Gone"
	// Foreign: the machine lacks the tag of this cluster. Nothing was done to it.
	Foreign State = "Foreign"
)

// states are all states.
var states = []State{Running, Stopping, Off, Gone, Foreign}

// Instance names a machine, by what its Node says. A kubelet chooses the providerID and the addresses.
type Instance struct {
	ProviderID string    `json:"providerID"`
	Node       string    `json:"node"`
	NodeUID    types.UID `json:"nodeUID"`
	Addresses  []string  `json:"addresses"`
}

// Provider reads the state of machines and turns them off. The documentation of the package has its contract.
type Provider interface {
	// Get returns the state of the machine.
	Get(ctx context.Context, i Instance) (State, error)
	// Stop ends the machine within a minute and keeps the disks that Kubernetes attached.
	Stop(ctx context.Context, i Instance) (State, error)
	// Delete removes the machine. No volume is attached to it.
	Delete(ctx context.Context, i Instance) (State, error)
}

// Error is what a provider says about a call that failed. On both sides errors.As finds an *Error.
type Error struct {
	// Message is the reason, safe to print and at most 1 KiB once a client has received it.
	Message string
	// Unsupported says that the call can never succeed.
	Unsupported bool
	// RetryAfter is how long the provider wants no further call, 0 if it does not say.
	RetryAfter time.Duration
}

func (e *Error) Error() string { return e.Message }

// maxMessage is the size of a provider's message in events, logs and reports.
const maxMessage = 1024

// cleaned returns text of a provider or a Node in one line that is safe to print, at most maxMessage bytes of it.
func cleaned(text string) string {
	text = strings.TrimSpace(terminal.Printable(text))
	if len(text) <= maxMessage {
		return text
	}
	end := maxMessage - len("...")
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "..."
}
