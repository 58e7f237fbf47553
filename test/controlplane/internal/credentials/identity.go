package credentials

import (
	"fmt"
	"strings"
)

// Identity is who a client certificate says its holder is.
type Identity struct {
	// User is the name that RBAC sees.
	User string
	// Groups are the groups that RBAC sees, beside system:authenticated, which
	// the API server adds itself.
	Groups []string
}

// Admin is the identity that RBAC never refuses.
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
