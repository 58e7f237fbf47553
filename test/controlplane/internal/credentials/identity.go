package credentials

import (
	"fmt"
	"strings"
)

// Identity is the user of a client certificate.
type Identity struct {
	// User is the user name for RBAC.
	User string
	// Groups are the groups for RBAC. The API server adds system:authenticated.
	Groups []string
}

// Admin is an identity with all rights.
var Admin = Identity{User: "kubernetes-admin", Groups: []string{"system:masters"}}

// ServiceAccount returns the identity of the service account name in
// namespace.
func ServiceAccount(namespace, name string) Identity {
	return Identity{
		User:   "system:serviceaccount:" + namespace + ":" + name,
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace},
	}
}

// ParseUser reads NAME[,GROUP...].
func ParseUser(text string) (Identity, error) {
	parts := strings.Split(text, ",")
	for _, part := range parts {
		if part == "" {
			return Identity{}, fmt.Errorf("parse user %q: want NAME[,GROUP...] without empty names", text)
		}
	}
	return Identity{User: parts[0], Groups: parts[1:]}, nil
}

// ParseServiceAccount reads NAMESPACE/NAME.
func ParseServiceAccount(text string) (Identity, error) {
	namespace, name, _ := strings.Cut(text, "/")
	if namespace == "" || name == "" || strings.Contains(name, "/") {
		return Identity{}, fmt.Errorf("parse service account %q: want NAMESPACE/NAME", text)
	}
	return ServiceAccount(namespace, name), nil
}
