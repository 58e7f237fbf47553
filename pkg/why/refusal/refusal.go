package refusal

import (
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/internal/enum"
)

// Kind is why a request failed.
type Kind int

const (
	// Unclear: the answer says nothing about the object.
	Unclear Kind = iota
	// WebhookUnreachable: an admission webhook that must answer does not.
	WebhookUnreachable
	// WebhookDenies: an admission webhook denies the write.
	WebhookDenies
	// PolicyDenies: a ValidatingAdmissionPolicy denies the write.
	PolicyDenies
	// NoDryRun: an admission webhook cannot be called in a dry run.
	NoDryRun
	// SchemaViolated: the object is not valid.
	SchemaViolated
	// Damaged: the stored object cannot be decrypted or decoded.
	Damaged
	// ConversionFails: the conversion webhook of the object's definition failed.
	ConversionFails
)

// String returns the name of the value.
func (k Kind) String() string {
	return enum.Name(k, "unclear", "webhookUnreachable", "webhookDenies", "policyDenies", "noDryRun", "schemaViolated",
		"damaged", "conversionFails")
}

// Classify returns why the request failed.
func Classify(status metav1.Status) Kind {
	for _, pattern := range texts {
		if containsAll(status.Message, pattern.parts) {
			return pattern.kind
		}
	}
	switch {
	case status.Code == http.StatusInternalServerError && isDamaged(status.Message):
		return Damaged
	case status.Code == http.StatusUnprocessableEntity && status.Reason == metav1.StatusReasonInvalid:
		return SchemaViolated
	}
	return Unclear
}

// texts are what messages of the API server contain.
var texts = []struct {
	kind  Kind
	parts []string
}{
	{ConversionFails, []string{"conversion webhook for "}},
	{NoDryRun, []string{"does not support dry run"}},
	{WebhookUnreachable, []string{"failed calling webhook "}},
	{PolicyDenies, []string{"ValidatingAdmissionPolicy '"}},
	{WebhookDenies, []string{"admission webhook ", " denied the request"}},
}

func containsAll(text string, parts []string) bool {
	return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(text, part) })
}

// Policy returns the name of the policy that denies the request, or "".
func Policy(message string) string {
	_, rest, _ := strings.Cut(message, "ValidatingAdmissionPolicy '")
	name, _, found := strings.Cut(rest, "'")
	if !found {
		return ""
	}
	return name
}

// Webhook returns the name of the webhook that the message quotes, or "".
func Webhook(message string) string {
	_, rest, _ := strings.Cut(message, "webhook \"")
	name, _, found := strings.Cut(rest, "\"")
	if !found {
		return ""
	}
	return name
}

// Calls reports whether the message quotes a call of the service.
func Calls(message, namespace, service string) bool {
	return strings.Contains(message, "\"https://"+service+"."+namespace+".svc:") ||
		strings.Contains(message, "\"https://"+service+"."+namespace+".svc/")
}

// isDamaged reports whether the message says that stored bytes cannot be decrypted or
// decoded. A key service that does not answer is no damage: it may come back.
func isDamaged(message string) bool {
	contains := func(part string) bool { return strings.Contains(message, part) }
	return slices.ContainsFunc(damage, contains) && !slices.ContainsFunc(outage, contains)
}

// damage are the errors of the storage transformers and decoders of the API server.
var damage = []string{
	"no matching key was found for the provided",
	"no matching prefix found",
	"the provided value does not match any of the supported transformers",
	"identity transformer tried to read encrypted data",
	"cipher: message authentication failed",
	"invalid padding on input",
	"invalid PKCS7 data",
	"the stored data was shorter than the required size",
	"the stored data is not a multiple of the block size",
	"the stored data is missing the required info prefix",
	"output array was not large enough for encryption",
	"couldn't get version/kind; json parse error",
	"illegal wireType",
	"illegal tag",
	"proto: wrong wireType",
	"proto: illegal",
	"data integrity error",
	"StorageReadError",
}

// outage is what an error of a key service says.
var outage = []string{"rpc error", "connection refused", "context deadline exceeded", "Unavailable",
	"no such file or directory"}
