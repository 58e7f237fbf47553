package harness

import (
	"os"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/test/sandbox"
)

// NewSecretNamespace creates a namespace with a secret, and returns its name.
func (s *Session) NewSecretNamespace(name string) string {
	s.T.Helper()
	namespace, err := s.Client.CoreV1().Namespaces().Create(s.Ctx,
		&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.Namespace + "-" + name}}, metav1.CreateOptions{})
	s.Must(err, "create namespace")
	s.CreateSecret(namespace.Name)
	return namespace.Name
}

// CreateSecret creates the secret "credentials".
func (s *Session) CreateSecret(namespace string) {
	s.T.Helper()
	secret := &v1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "credentials"}, StringData: map[string]string{"user": "root"}}
	_, err := s.Client.CoreV1().Secrets(namespace).Create(s.Ctx, secret, metav1.CreateOptions{})
	s.Must(err, "create secret")
}

// DeleteSecret deletes the secret "credentials".
func (s *Session) DeleteSecret(namespace string) {
	s.T.Helper()
	s.Must(s.Client.CoreV1().Secrets(namespace).Delete(s.Ctx, "credentials", metav1.DeleteOptions{}), "delete secret")
}

// DeleteNamespace deletes a namespace.
func (s *Session) DeleteNamespace(name string) {
	s.T.Helper()
	s.Must(s.Client.CoreV1().Namespaces().Delete(s.Ctx, name, metav1.DeleteOptions{}), "delete namespace")
}

// FinalizeNamespace ends the deletion of a namespace, as the namespace controller does.
func (s *Session) FinalizeNamespace(name string) {
	s.T.Helper()
	namespace, err := s.Client.CoreV1().Namespaces().Get(s.Ctx, name, metav1.GetOptions{})
	s.Must(err, "read namespace")
	namespace.Spec.Finalizers = nil
	_, err = s.Client.CoreV1().Namespaces().Finalize(s.Ctx, namespace, metav1.UpdateOptions{})
	s.Must(err, "finalize namespace")
}

// GrantSecrets grants the provisioner the right to read secrets.
func (s *Session) GrantSecrets() {
	s.T.Helper()
	text, err := os.ReadFile(InCheckout("deploy", "provisioner", "secrets", "rbac.yaml"))
	s.Must(err, "read manifest")
	s.Must(sandbox.ApplyYAML(s.Ctx, s.Plane.RESTConfig(), text), "grant the right to read secrets")
}
