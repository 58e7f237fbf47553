package identity

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/exeunt-io/exeunt/pkg/controller"
)

// accountFile is the namespace of the pod, mounted by the kubelet.
const accountFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// LeaseNamespace returns the namespace of the leader lease: that of the flag, the
// namespace of the pod, or "default".
func LeaseNamespace(flag string) string {
	return cmp.Or(flag, podNamespace(), metav1.NamespaceDefault)
}

// JournalNamespace returns the namespace of the journal: that of the leader lease. If
// neither leader election, flag nor pod states a namespace, as outside of a cluster, the
// journal is in the namespace of the service account.
func JournalNamespace(ctx context.Context, client kubernetes.Interface, elected bool, flag string) (string, error) {
	if elected || flag != "" || podNamespace() != "" {
		return LeaseNamespace(flag), nil
	}
	account, err := accountNamespace(ctx, client)
	return cmp.Or(account, LeaseNamespace(flag)), err
}

// accountNamespace returns the namespace of the service account that the API server
// authenticates this process as, "" for other users. No answer is an error: in another
// namespace this process would miss the entries of its predecessor.
func accountNamespace(ctx context.Context, client kubernetes.Interface) (string, error) {
	review, err := client.AuthenticationV1().SelfSubjectReviews().
		Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	switch {
	case apierrors.IsForbidden(err):
		return "", nil
	case apierrors.IsNotFound(err):
		served, unknown := controller.Serves(client.Discovery(),
			authenticationv1.SchemeGroupVersion.WithResource("selfsubjectreviews"))
		if unknown == nil && !served { // an old API server
			return "", nil
		}
		return "", fmt.Errorf("ask the API server for the service account of this process: %w", err)
	case err != nil:
		return "", fmt.Errorf("ask the API server for the service account of this process: %w", err)
	}
	account, is := strings.CutPrefix(review.Status.UserInfo.Username, "system:serviceaccount:")
	if namespace, _, found := strings.Cut(account, ":"); is && found {
		return namespace, nil
	}
	return "", nil
}

// podNamespace returns the namespace of the pod, "" outside of a pod.
func podNamespace() string {
	if namespace := os.Getenv("POD_NAMESPACE"); namespace != "" {
		return namespace
	}
	mounted, err := os.ReadFile(accountFile)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(mounted))
}
