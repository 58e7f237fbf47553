package serving

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// The ConfigMap in which the API server publishes its client CAs and request headers.
const publishedNamespace, publishedName = metav1.NamespaceSystem, "extension-apiserver-authentication"

// reader is the token and the name of the only user with rights.
const reader = "reader"

// reviewer serves reviews as the API server, and returns its address. Every token except
// "forged" is the name of its user.
func reviewer(t *testing.T) string {
	t.Helper()
	return apiServer(t, http.NewServeMux())
}

// publisher serves reviews and the published CAs and request headers.
func publisher(t *testing.T, published map[string]string) string {
	t.Helper()
	const path = "GET /api/v1/namespaces/" + publishedNamespace + "/configmaps"
	configMap := corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: publishedNamespace, Name: publishedName,
		ResourceVersion: "1"}, Data: published}
	paths := http.NewServeMux()
	paths.HandleFunc(path+"/"+publishedName, func(w http.ResponseWriter, _ *http.Request) { answer(t, w, configMap) })
	paths.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("sendInitialEvents") != "" {
			w.WriteHeader(http.StatusUnprocessableEntity) // the client lists instead
			return
		}
		if r.URL.Query().Get("watch") == "" {
			answer(t, w, corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: "1"},
				Items: []corev1.ConfigMap{configMap}})
			return
		}
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	return apiServer(t, paths)
}

func apiServer(t *testing.T, paths *http.ServeMux) string {
	t.Helper()
	paths.HandleFunc("POST /apis/authentication.k8s.io/v1/tokenreviews",
		review(t, func(review *authenticationv1.TokenReview) {
			review.Status.Authenticated = review.Spec.Token != "forged"
			review.Status.User.Username = review.Spec.Token
		}))
	paths.HandleFunc("POST /apis/authorization.k8s.io/v1/subjectaccessreviews",
		review(t, func(review *authorizationv1.SubjectAccessReview) {
			review.Status.Allowed = review.Spec.User == reader
		}))
	server := httptest.NewServer(paths)
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections) // ends watches
	return server.URL
}

func review[T any](t *testing.T, decide func(*T)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		asked := new(T)
		if err := json.NewDecoder(r.Body).Decode(asked); err != nil {
			t.Errorf("read review: %v", err)
		}
		decide(asked)
		answer(t, w, asked)
	}
}

func answer(t *testing.T, w http.ResponseWriter, object any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(object); err != nil {
		t.Errorf("answer request: %v", err)
	}
}

// kubeconfig returns a kubeconfig file of the server.
func kubeconfig(t *testing.T, server string) string {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["test"] = &clientcmdapi.Cluster{Server: server}
	config.Contexts["test"] = &clientcmdapi.Context{Cluster: "test"}
	config.CurrentContext = "test"
	text, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
