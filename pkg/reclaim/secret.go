package reclaim

// Secret is what is known of the secret that deleting a volume needs.
type Secret int

const (
	// NoSecret: neither the volume nor its class names a secret.
	NoSecret Secret = iota
	// SecretPresent: the secret was read.
	SecretPresent
	// SecretMissing: the secret does not exist, its namespace does.
	SecretMissing
	// SecretMissingNamespaceUnknown: the secret does not exist, and this process may not
	// read namespaces.
	SecretMissingNamespaceUnknown
	// SecretNamespaceTerminating: the secret does not exist, and its namespace is being
	// deleted, so that nobody can create the secret again.
	SecretNamespaceTerminating
	// SecretNamespaceGone: neither the secret nor its namespace exists.
	SecretNamespaceGone
)

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

// Use returns how DeleteVolume is called: without a secret only if there never was one,
// or if the secret cannot be created again, where upstream calls without it, too.
func (s Secret) Use() SecretUse {
	switch s {
	case SecretPresent:
		return CallWithSecret
	case NoSecret, SecretNamespaceTerminating, SecretNamespaceGone:
		return CallWithoutSecret
	case SecretMissing, SecretMissingNamespaceUnknown:
	}
	return AwaitSecret
}
