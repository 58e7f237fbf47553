package serving

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/authorization/path"
	"k8s.io/apiserver/pkg/authorization/union"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

const (
	// The ConfigMap in which the API server publishes its client CAs and request headers.
	publishedNamespace, publishedName = metav1.NamespaceSystem, "extension-apiserver-authentication"
	// reviewTimeout bounds one TokenReview or SubjectAccessReview.
	reviewTimeout = 10 * time.Second
	// Reviews have their own client. A low rate limit would delay every request.
	reviewQPS, reviewBurst = 200, 400
)

// reviewBackoff is the time between retries of a review.
func reviewBackoff() *wait.Backoff {
	return &wait.Backoff{Duration: 500 * time.Millisecond, Factor: 1.5, Jitter: 0.2, Steps: 5}
}

// authenticationOptions are the flags of delegated authentication: client certificates,
// request headers of a front proxy, and tokens that the API server reviews.
type authenticationOptions struct {
	kubeconfig      string
	cacheTTL        time.Duration
	skipLookup      bool
	tolerateFailure bool
	clientCAFile    string
	requestHeader   requestHeaderOptions
}

type requestHeaderOptions struct {
	usernames, uids, groups, extraPrefixes, allowedNames []string

	clientCAFile string
}

func newAuthenticationOptions() authenticationOptions {
	return authenticationOptions{cacheTTL: 10 * time.Second, requestHeader: requestHeaderOptions{
		usernames: []string{"x-remote-user"}, groups: []string{"x-remote-group"}, extraPrefixes: []string{"x-remote-extra-"},
	}}
}

func (o *authenticationOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.kubeconfig, "authentication-kubeconfig", o.kubeconfig, "kubeconfig of the API server that reviews tokens, with the right to create tokenreviews; without it, --kubeconfig or the service account of the pod is used")
	flags.DurationVar(&o.cacheTTL, "authentication-token-webhook-cache-ttl", o.cacheTTL, "how long reviews of tokens are cached")
	flags.BoolVar(&o.skipLookup, "authentication-skip-lookup", o.skipLookup, "do not read missing client CAs and request headers from the ConfigMap "+publishedNamespace+"/"+publishedName)
	flags.BoolVar(&o.tolerateFailure, "authentication-tolerate-lookup-failure", o.tolerateFailure, "serve even if that ConfigMap cannot be read; then requests may be treated as anonymous")
	flags.StringVar(&o.clientCAFile, "client-ca-file", o.clientCAFile, "file with the CAs of client certificates; the CommonName of a client certificate is the user name")
	headers := &o.requestHeader
	flags.StringSliceVar(&headers.usernames, "requestheader-username-headers", headers.usernames, "request headers with the user name, such as X-Remote-User")
	flags.StringSliceVar(&headers.uids, "requestheader-uid-headers", headers.uids, "request headers with the UID of the user, such as X-Remote-Uid")
	flags.StringSliceVar(&headers.groups, "requestheader-group-headers", headers.groups, "request headers with the groups of the user, such as X-Remote-Group")
	flags.StringSliceVar(&headers.extraPrefixes, "requestheader-extra-headers-prefix", headers.extraPrefixes, "prefixes of request headers with extra fields of the user, such as X-Remote-Extra-")
	flags.StringVar(&headers.clientCAFile, "requestheader-client-ca-file", headers.clientCAFile, "file with the CAs of the front proxies whose request headers are trusted")
	flags.StringSliceVar(&headers.allowedNames, "requestheader-allowed-names", headers.allowedNames, "common names of the front proxies' certificates; empty for every certificate of --requestheader-client-ca-file")
}

func (o *authenticationOptions) validate() error {
	headers := o.requestHeader
	var errs []error
	for flag, values := range map[string][]string{
		"requestheader-username-headers": headers.usernames, "requestheader-uid-headers": headers.uids, "requestheader-group-headers": headers.groups,
		"requestheader-extra-headers-prefix": headers.extraPrefixes, "requestheader-allowed-names": headers.allowedNames,
	} {
		for _, value := range values {
			if strings.TrimSpace(value) == "" {
				errs = append(errs, fmt.Errorf("--%s must not contain an empty value", flag))
			}
		}
	}
	if len(headers.uids) > 0 && !slices.ContainsFunc(headers.uids, func(name string) bool { return strings.EqualFold(name, "X-Remote-Uid") }) {
		errs = append(errs, errors.New("--requestheader-uid-headers must contain X-Remote-Uid"))
	}
	return errors.Join(errs...)
}

// config returns the configuration of the authenticator, and the CAs of client
// certificates, nil if none are accepted.
func (o *authenticationOptions) config(ctx context.Context) (*authenticatorfactory.DelegatingAuthenticatorConfig, dynamiccertificates.CAContentProvider, error) {
	client, err := reviewClient(o.kubeconfig, 0)
	if err != nil {
		return nil, nil, err
	}
	config := &authenticatorfactory.DelegatingAuthenticatorConfig{
		Anonymous: &apiserver.AnonymousAuthConfig{Enabled: true}, CacheTTL: o.cacheTTL, WebhookRetryBackoff: reviewBackoff(),
		TokenAccessReviewClient: client.AuthenticationV1(), TokenAccessReviewTimeout: reviewTimeout,
	}
	if config.ClientCertificateCAContentProvider, err = o.clientCA(client); err != nil {
		return nil, nil, err
	}
	if config.RequestHeaderConfig, err = o.requestHeaders(ctx, client); err != nil {
		return nil, nil, err
	}
	var accepted []dynamiccertificates.CAContentProvider
	if config.ClientCertificateCAContentProvider != nil {
		accepted = append(accepted, config.ClientCertificateCAContentProvider)
	}
	if config.RequestHeaderConfig != nil {
		accepted = append(accepted, config.RequestHeaderConfig.CAContentProvider)
	}
	if len(accepted) == 0 {
		return config, nil, nil
	}
	return config, dynamiccertificates.NewUnionCAContentProvider(accepted...), nil
}

// clientCA returns the CAs of client certificates, nil without any.
func (o *authenticationOptions) clientCA(client kubernetes.Interface) (dynamiccertificates.CAContentProvider, error) {
	switch {
	case o.clientCAFile != "":
		ca, err := dynamiccertificates.NewDynamicCAContentFromFile("client-ca-bundle", o.clientCAFile)
		if err != nil {
			return nil, fmt.Errorf("use --client-ca-file: %w", err)
		}
		return ca, nil
	case o.skipLookup:
		return nil, nil
	}
	ca, err := dynamiccertificates.NewDynamicCAFromConfigMapController("client-ca", publishedNamespace, publishedName, "client-ca-file", client)
	if err != nil {
		return nil, fmt.Errorf("follow the published client CAs: %w", err)
	}
	return ca, nil
}

// requestHeaders returns which request headers of which front proxies are trusted, nil for
// none.
func (o *authenticationOptions) requestHeaders(ctx context.Context, client kubernetes.Interface) (*authenticatorfactory.RequestHeaderConfig, error) {
	headers := o.requestHeader
	switch {
	case headers.clientCAFile != "":
		ca, err := dynamiccertificates.NewDynamicCAContentFromFile("request-header", headers.clientCAFile)
		if err != nil {
			return nil, fmt.Errorf("use --requestheader-client-ca-file: %w", err)
		}
		static := func(values []string) headerrequest.StringSliceProvider {
			return headerrequest.StaticStringSlice(values)
		}
		return &authenticatorfactory.RequestHeaderConfig{
			CAContentProvider: ca, UsernameHeaders: static(headers.usernames), UIDHeaders: static(headers.uids), GroupHeaders: static(headers.groups),
			ExtraHeaderPrefixes: static(headers.extraPrefixes), AllowedClientNames: static(headers.allowedNames),
		}, nil
	case o.skipLookup:
		return nil, nil
	}
	config, err := publishedRequestHeaders(ctx, client)
	if err != nil && o.tolerateFailure {
		klog.FromContext(ctx).Error(err, "Serving without the published request headers; requests may be treated as anonymous")
		return nil, nil
	}
	return config, err
}

// publishedHeaders follows the published CAs and request headers of front proxies.
type publishedHeaders struct {
	*dynamiccertificates.ConfigMapCAController
	headers *headerrequest.RequestHeaderAuthRequestController
}

// RunOnce reads the ConfigMap.
func (p *publishedHeaders) RunOnce(ctx context.Context) error {
	return errors.Join(p.ConfigMapCAController.RunOnce(ctx), p.headers.RunOnce(ctx))
}

// Run follows the ConfigMap until the context ends.
func (p *publishedHeaders) Run(ctx context.Context, workers int) {
	go p.headers.Run(ctx, workers)
	p.ConfigMapCAController.Run(ctx, workers)
}

func publishedRequestHeaders(ctx context.Context, client kubernetes.Interface) (*authenticatorfactory.RequestHeaderConfig, error) {
	ca, err := dynamiccertificates.NewDynamicCAFromConfigMapController("client-ca", publishedNamespace, publishedName, "requestheader-client-ca-file", client)
	if err != nil {
		return nil, fmt.Errorf("follow the published CAs of front proxies: %w", err)
	}
	headers := headerrequest.NewRequestHeaderAuthRequestController(publishedName, publishedNamespace, client,
		"requestheader-username-headers", "requestheader-uid-headers", "requestheader-group-headers", "requestheader-extra-headers-prefix", "requestheader-allowed-names")
	published := &publishedHeaders{ca, headers}
	if err := published.RunOnce(ctx); err != nil {
		return nil, fmt.Errorf("read ConfigMap %s/%s: %w", publishedNamespace, publishedName, err)
	}
	dynamic := func(values func() []string) headerrequest.StringSliceProvider {
		return headerrequest.StringSliceProviderFunc(values)
	}
	return &authenticatorfactory.RequestHeaderConfig{
		CAContentProvider: published, UsernameHeaders: dynamic(headers.UsernameHeaders), UIDHeaders: dynamic(headers.UIDHeaders), GroupHeaders: dynamic(headers.GroupHeaders),
		ExtraHeaderPrefixes: dynamic(headers.ExtraHeaderPrefixes), AllowedClientNames: dynamic(headers.AllowedClientNames),
	}, nil
}

// reviewClient returns the client for reviews: that of the kubeconfig, or of the service
// account of the pod. A timeout of 0 leaves it to the context of each request.
func reviewClient(kubeconfig string, timeout time.Duration) (kubernetes.Interface, error) {
	load := rest.InClusterConfig
	if kubeconfig != "" {
		load = func() (*rest.Config, error) { return clientcmd.BuildConfigFromFlags("", kubeconfig) }
	}
	config, err := load()
	if err != nil {
		return nil, fmt.Errorf("load kubeconfig %q for reviews: %w", kubeconfig, err)
	}
	config.QPS, config.Burst, config.Timeout = reviewQPS, reviewBurst, timeout
	return kubernetes.NewForConfig(config)
}

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
