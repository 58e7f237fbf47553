package external

import "github.com/exeunt-io/exeunt/internal/enum"

// Secret is the state of the secret that DeleteVolume needs.
type Secret int

const (
	// SecretNone: neither the volume nor its class names a secret.
	SecretNone Secret = iota
	// SecretPresent: the secret was read.
	SecretPresent
	// SecretMissing: the secret does not exist, its namespace does.
	SecretMissing
	// SecretMissingNamespaceUnknown: the secret does not exist, and the provisioner may not read
	// namespaces.
	SecretMissingNamespaceUnknown
	// SecretNamespaceTerminating: the secret does not exist and cannot be created again,
	// because its namespace is being deleted.
	SecretNamespaceTerminating
	// SecretNamespaceGone: neither the secret nor its namespace exists.
	SecretNamespaceGone
)

// String returns the name of the value.
func (s Secret) String() string {
	return enum.Name(s, "None", "Present", "Missing", "MissingNamespaceUnknown", "NamespaceTerminating", "NamespaceGone")
}

// SecretUse is how DeleteVolume is called.
type SecretUse int

const (
	// AwaitSecret does not call DeleteVolume until the secret exists.
	AwaitSecret SecretUse = iota
	// CallWithSecret calls DeleteVolume with the secret.
	CallWithSecret
	// CallWithoutSecret calls DeleteVolume without secrets; the driver decides.
	CallWithoutSecret
)

// String returns the name of the value.
func (u SecretUse) String() string {
	return enum.Name(u, "AwaitSecret", "CallWithSecret", "CallWithoutSecret")
}

// Use returns how DeleteVolume is called: without secrets only if the volume names none, or
// if the secret cannot be created again, as external-provisioner does. In our first version such a
// volume waited for a secret that had gone with its namespace, for ever.
func (s Secret) Use() SecretUse {
	switch s {
	case SecretPresent:
		return CallWithSecret
	case SecretNone, SecretNamespaceTerminating, SecretNamespaceGone:
		return CallWithoutSecret
	case SecretMissing, SecretMissingNamespaceUnknown:
	}
	return AwaitSecret
}
