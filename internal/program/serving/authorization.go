package serving

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/authorization/path"
	"k8s.io/apiserver/pkg/authorization/union"
)

// adminGroup may do everything in every cluster, so that its rights need no review.
const adminGroup = "system:masters"

// authorizationOptions are the flags of delegated authorization.
type authorizationOptions struct {
	kubeconfig            string
	allowedTTL, deniedTTL time.Duration
	publicPaths           []string
}

func newAuthorizationOptions() authorizationOptions {
	return authorizationOptions{allowedTTL: 10 * time.Second, deniedTTL: 10 * time.Second, publicPaths: []string{"/healthz", "/readyz", "/livez"}}
}

func (o *authorizationOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.kubeconfig, "authorization-kubeconfig", o.kubeconfig, "kubeconfig of the API server that reviews access, with the right to create subjectaccessreviews; without it, --kubeconfig or the service account of the pod is used")
	flags.DurationVar(&o.allowedTTL, "authorization-webhook-cache-authorized-ttl", o.allowedTTL, "how long a positive review of access is cached")
	flags.DurationVar(&o.deniedTTL, "authorization-webhook-cache-unauthorized-ttl", o.deniedTTL, "how long a negative review of access is cached")
	flags.StringSliceVar(&o.publicPaths, "authorization-always-allow-paths", o.publicPaths, "HTTP paths that everybody may read without a review")
}

// authorizer returns the authorizer: the admin group and public paths are always allowed,
// all other access is reviewed by the API server.
func (o *authorizationOptions) authorizer() (authorizer.Authorizer, error) {
	client, err := reviewClient(o.kubeconfig, reviewTimeout)
	if err != nil {
		return nil, err
	}
	public, err := path.NewAuthorizer(o.publicPaths)
	if err != nil {
		return nil, fmt.Errorf("use --authorization-always-allow-paths: %w", err)
	}
	config := authorizerfactory.DelegatingAuthorizerConfig{
		SubjectAccessReviewClient: client.AuthorizationV1(), AllowCacheTTL: o.allowedTTL, DenyCacheTTL: o.deniedTTL, WebhookRetryBackoff: reviewBackoff(),
	}
	reviewed, err := config.New()
	if err != nil {
		return nil, fmt.Errorf("delegate authorization: %w", err)
	}
	return union.New(authorizerfactory.NewPrivilegedGroups(adminGroup), public, reviewed), nil
}
